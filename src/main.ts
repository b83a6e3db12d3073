import { pino } from 'pino';
import { createApp } from './app.ts';
import { ConfigError, readConfig } from './config.ts';

/** Exit status of a faulty configuration (BSD `sysexits.h`, EX_CONFIG). */
const EX_CONFIG = 78;

/** Of the sample originals; a test asks for each of them. */
const SAMPLE_LINKS = [
  '/avatars/1/ab12.webp?size=256',
  '/emojis/1473333333333333334.gif?size=64',
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=400&format=webp',
];

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = pino({ level: config.log.level });
  // Whatever this is, its cause must not be lost; nobody can tell in what state it leaves us.
  process.on('uncaughtException', (error, kind) => {
    log.fatal({ err: error, kind }, 'an error that nobody has caught');
    process.exit(1);
  });
  const app = await createApp(config, { log });
  const address = await app.server.listen(config.listen);
  log.info({ address, workers: config.renderer.workers }, `Darkroom listens on ${address}`);
  if (config.storage.kind === 'filesystem' && config.storage.isSample) {
    const links = SAMPLE_LINKS.map((link) => `  ${address}${link}`);
    process.stderr.write(
      `\nDarkroom serves its sample originals on ${address}\nTry:\n${links.join('\n')}\n\n`,
    );
  }

  let isStopping = false;
  const stop = (signal: string): void => {
    if (isStopping) process.exit(1);
    isStopping = true;
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), config.shutdown.graceMs).unref();
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) {
    process.stderr.write(`The configuration is not valid:\n${error.message}\n`);
    process.exit(EX_CONFIG);
  }
  process.stderr.write(`Darkroom cannot start: ${String(error)}\n`);
  process.exit(1);
});
