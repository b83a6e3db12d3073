import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import type { App } from './app.ts';
import { type Config, ConfigError, readConfig } from './config/config.ts';
import { describeUnknownSetting } from './config/unknown-settings.ts';
import type { Log } from './pipeline/ports.ts';
import { handleStopSignals } from './stop-signals.ts';
import { createLog, type ProcessLog } from './telemetry/log.ts';
import type { Confinement } from './workers/confinement/confinement.ts';

/** Exit status of a faulty configuration (BSD `sysexits.h`, EX_CONFIG). */
const EX_CONFIG = 78;

/** Links to sample originals; a test requests each of them. */
const SAMPLE_LINKS = [
  '/avatars/1/ab12.webp?size=256',
  '/emojis/1473333333333333334.gif?size=64',
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=400&format=webp',
];

/**
 * Connections that may wait to be accepted; the system cuts it to its own bound (Linux: 4096). After
 * a start, all clients come at once, and of Node's 511 the rest would try again after a second.
 */
const BACKLOG = 4_096;

/**
 * Growth of the heap, and of the originals and results that it refers to, beyond what was alive at the
 * last collection, in percent. V8 lets it grow to four times that on a machine with much memory: under a
 * mixed load (`npm run soak`), the process rose by 18 % from minute 5 to 30, though no more was alive; with
 * this by 7 %, with 200 by 15 %. So that a small heap is not collected all the time, for the sake of the
 * originals that pass by, `npm start` gives Node `--initial-heap-size`, below which there is no hurry: 2.2 ms
 * of CPU for an avatar in this process instead of 3.8.
 */
const HEAP_GROWTH_PERCENT = 50;

/** Where compiled code is kept from one start to the next. Not in a folder that others may write, as the default is. */
const COMPILE_CACHE = new URL('../node_modules/.cache/darkroom/', import.meta.url);

/** Since Node 22.8; a folder that cannot be written is no error. */
function enableCompileCache(): void {
  const { enableCompileCache: enable } = nodeModule as {
    readonly enableCompileCache?: (folder: string) => unknown;
  };
  enable?.(fileURLToPath(COMPILE_CACHE));
}

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const config = readConfig(process.env);
  const processLog = await createProcessLog(config);
  const { log, countLost } = processLog;
  let listening: App | undefined;
  // Its cause must not be lost; what state it leaves the process in is unknown.
  process.on('uncaughtException', (error, kind) => {
    log.fatal({ err: error, kind }, 'an error that nobody has caught');
    listening?.endWorkers();
    process.exit(1);
  });
  // Node would print them to standard error, several lines each.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ warning: name }, message));
  for (const unknown of config.unknownSettings) {
    log.warn({ variable: unknown.name }, describeUnknownSetting(unknown));
  }
  stopOnSignals(() => listening, config.shutdown.graceMs, processLog);
  enableCompileCache();
  // Not before: what is imported at the top is compiled before anything runs.
  const { createApp } = await import('./app.ts');
  const app = await createApp(config, {
    log,
    requestLog: log,
    countLostLines: countLost,
  });
  const reachable = await app.server.listen({ ...config.listen, backlog: BACKLOG });
  listening = app;
  if (app.admin !== undefined && config.admin !== undefined) {
    await app.admin.listen(config.admin.listen);
    const adminAddress = boundAddressOf(app.admin, 'http');
    log.info({ address: adminAddress }, `The admin listener is on ${adminAddress}`);
  }
  await app.started;
  const address = boundAddressOf(app.server, config.http.tls === undefined ? 'http' : 'https');
  const { release, renderer, explorer, storage, rates, http } = config;
  const { workers } = renderer;
  log.info(
    { address, ...release, node: process.version, workers, confinement: app.confinement },
    `Darkroom listens on ${address}`,
  );
  if (app.confinement !== undefined) await logConfinement(app.confinement, log);
  if (explorer.isOn) log.info({ address }, `The explorer lists the originals on ${address}/`);
  if (explorer.isExposed) {
    log.warn(
      { address },
      'The explorer shows all originals, private attachments too, to anybody who reaches this address',
    );
  }
  if (rates !== undefined && http.trustProxy === true) {
    log.warn(
      { address },
      'With TRUST_PROXY=true, anybody who reaches this address passes for any client: RATE_LIMIT_REQUESTS limits only those that do not pretend. Name the proxies',
    );
  }
  if (storage.kind === 'filesystem' && storage.isSample) {
    const links = SAMPLE_LINKS.map((link) => `  ${reachable}${link}`);
    const look = explorer.isOn ? `Look around: ${reachable}/\n` : '';
    process.stderr.write(
      `\nDarkroom serves its sample originals on ${reachable}\n${look}Try:\n${links.join('\n')}\n\n`,
    );
  }
}

/** Says how far workers are confined; a warning where that is not whole. */
async function logConfinement(confinement: Confinement, log: Log): Promise<void> {
  const { describeConfinement, listDangers } = await import('./workers/confinement/confinement.ts');
  const level = listDangers(confinement).length === 0 ? 'info' : 'warn';
  log[level]({ by: confinement.by }, describeConfinement(confinement));
}

/** The log, with none of the secrets that the process was given. */
function createProcessLog({ log, admin, signingKeys, tracing }: Config): Promise<ProcessLog> {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  return createLog({
    level: log.level,
    secrets: [
      admin?.token,
      ...signingKeys.flatMap(({ secrets }) => secrets),
      AWS_SECRET_ACCESS_KEY,
      AWS_SESSION_TOKEN,
      AWS_ACCESS_KEY_ID,
      ...(tracing?.secrets ?? []),
    ],
    terminal: process.stdout.isTTY ? process.stdout : undefined,
  });
}

/** The address that a listener was bound to. Of one that stands for all of the machine's, Fastify names only one. */
function boundAddressOf(server: App['server'], scheme: 'http' | 'https'): string {
  const bound = server.server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server has no address.');
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${scheme}://${host}:${bound.port}`;
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
  let isEnding = false;
  const end = (status: 0 | 1, signal: NodeJS.Signals): void => {
    // Once the workers have been ended, the app is soon closed, too; that is no good end.
    if (isEnding) return;
    isEnding = true;
    if (status === 1) findApp()?.endWorkers();
    void endProcess(status, signal, processLog);
  };
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ signal }, 'stopping');
    const app = findApp();
    if (app === undefined) {
      end(0, signal);
      return;
    }
    setTimeout(() => {
      log.warn({ graceMs }, 'the grace time is over; what still ran is cut off');
      end(1, signal);
    }, graceMs).unref();
    app.close().then(
      () => end(0, signal),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed');
        end(1, signal);
      },
    );
  };
  handleStopSignals(process, stop, (signal) => {
    log.warn({ signal }, 'stopped by a second signal; what still ran is cut off');
    end(1, signal);
  });
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
  { log, settle }: ProcessLog,
): Promise<void> {
  log.info({ status }, 'stopped');
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
