import { setFlagsFromString } from 'node:v8';
import { type App, createApp } from './app.ts';
import { ConfigError, readConfig } from './config/config.ts';
import { createLog, createRequestLog, type ProcessLog } from './telemetry/log.ts';

/** Exit status of a faulty configuration (BSD `sysexits.h`, EX_CONFIG). */
const EX_CONFIG = 78;

/** Of the sample originals; a test asks for each of them. */
const SAMPLE_LINKS = [
  '/avatars/1/ab12.webp?size=256',
  '/emojis/1473333333333333334.gif?size=64',
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=400&format=webp',
];

/**
 * How many connections may wait to be accepted; the system cuts it to its own bound (Linux: 4096). After
 * a start, all clients come at once, and of Node's 511 the rest would try again after a second.
 */
const BACKLOG = 4_096;

/**
 * A signal that comes again within this time is the same one: `timeout` of coreutils, and init systems,
 * send it to the process and then to its group. Somebody's second ^C takes longer.
 */
const SAME_SIGNAL_MS = 100;

/**
 * How far the heap, and the originals and results that it refers to, may grow beyond what was alive at the
 * last collection, in percent. V8 lets it grow to four times that on a machine with much memory: under a
 * mixed load (`npm run soak`), the process rose by 18 % from minute 5 to 30, though no more was alive; with
 * this by 7 %, with 200 by 15 %. So that a small heap is not collected all the time, for the sake of the
 * originals that pass by, `npm start` gives Node `--initial-heap-size`, below which there is no hurry: 2.2 ms
 * of CPU for an avatar in this process instead of 3.8.
 */
const HEAP_GROWTH_PERCENT = 50;

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const config = readConfig(process.env);
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const processLog = createLog({
    level: config.log.level,
    secrets: [
      config.admin?.token,
      AWS_SECRET_ACCESS_KEY,
      AWS_SESSION_TOKEN,
      AWS_ACCESS_KEY_ID,
      ...(config.tracing?.secrets ?? []),
    ],
    terminal: process.stdout.isTTY ? process.stdout : undefined,
  });
  const { log, countLost } = processLog;
  let listening: App | undefined;
  // Whatever this is, its cause must not be lost; nobody can tell in what state it leaves us.
  process.on('uncaughtException', (error, kind) => {
    log.fatal({ err: error, kind }, 'an error that nobody has caught');
    listening?.endWorkers();
    process.exit(1);
  });
  stopOnSignals(() => listening, config.shutdown.graceMs, processLog);
  const app = await createApp(config, {
    log,
    requestLog: createRequestLog(log),
    countLostLines: countLost,
  });
  const address = await app.server.listen({ ...config.listen, backlog: BACKLOG });
  listening = app;
  if (app.admin !== undefined && config.admin !== undefined) {
    const adminAddress = await app.admin.listen(config.admin.listen);
    log.info({ address: adminAddress }, `The admin listener is on ${adminAddress}`);
  }
  const { workers } = config.renderer;
  log.info({ address, workers, confinement: app.confinement }, `Darkroom listens on ${address}`);
  if (config.explorer.isOn) {
    log.info({ address }, `The explorer lists the originals on ${address}/`);
  }
  if (config.explorer.isExposed) {
    log.warn(
      { address },
      'The explorer shows all originals, private attachments too, to anybody who reaches this address',
    );
  }
  if (config.storage.kind === 'filesystem' && config.storage.isSample) {
    const links = SAMPLE_LINKS.map((link) => `  ${address}${link}`);
    const explorer = config.explorer.isOn ? `Look around: ${address}/\n` : '';
    process.stderr.write(
      `\nDarkroom serves its sample originals on ${address}\n${explorer}Try:\n${links.join('\n')}\n\n`,
    );
  }
}

/**
 * From now on, SIGTERM and SIGINT stop the service: what runs may end within the grace time, and the exit
 * status is 0; what has not ended by then is cut off, and the status is 1. A second signal cuts off at
 * once. Before there is an app that listens, nothing runs, and there is nothing to wait for.
 *
 * The workers end with the process, however it ends: they are ended first, or the channel to it closes.
 */
function stopOnSignals(
  findApp: () => App | undefined,
  graceMs: number,
  processLog: ProcessLog,
): void {
  const { log } = processLog;
  let stoppingSinceMs: number | undefined;
  let isEnding = false;
  const stop = (signal: NodeJS.Signals): void => {
    const end = (status: 0 | 1): void => {
      // Once the workers have been ended, the app is soon closed, too; that is no good end.
      if (isEnding) return;
      isEnding = true;
      if (status === 1) findApp()?.endWorkers();
      void endProcess(status, signal, processLog);
    };
    const nowMs = performance.now();
    if (stoppingSinceMs !== undefined) {
      if (nowMs - stoppingSinceMs < SAME_SIGNAL_MS) return;
      log.warn({ signal }, 'stopped by a second signal; what still ran is cut off');
      end(1);
      return;
    }
    stoppingSinceMs = nowMs;
    log.info({ signal }, 'stopping');
    const app = findApp();
    if (app === undefined) {
      end(0);
      return;
    }
    setTimeout(() => {
      log.warn({ graceMs }, 'the grace time is over; what still ran is cut off');
      end(1);
    }, graceMs).unref();
    app.close().then(
      () => end(0),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed');
        end(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

/**
 * Ends the process. Node would wait for a write of the log that hangs; so if one does, the system ends it: by the
 * signal that was to stop it, which supervisors take for a good end, or by SIGKILL if something was cut off.
 *
 * Not covered: the first process of a container, which no signal of its own ends. Docker and Kubernetes give it
 * pipes, which do not hang.
 */
async function endProcess(
  status: 0 | 1,
  signal: NodeJS.Signals,
  { settle }: ProcessLog,
): Promise<void> {
  if (!(await settle())) {
    process.removeAllListeners(signal);
    process.kill(process.pid, status === 0 ? signal : 'SIGKILL');
  }
  process.exit(status);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) {
    process.stderr.write(`The configuration is not valid:\n${error.message}\n`);
    process.exit(EX_CONFIG);
  }
  process.stderr.write(`Darkroom cannot start: ${String(error)}\n`);
  process.exit(1);
});
