import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { App } from './app.ts';
import { type Config, ConfigError, readConfig } from './config/config.ts';
import type { Log } from './pipeline/ports.ts';
import { handleStopSignals } from './stop-signals.ts';
import { createLog, type ProcessLog } from './telemetry/log.ts';
import type { VideoSupport } from './workers/video/video-decoder.ts';

/** Exit status for an invalid configuration (BSD `sysexits.h`). */
const EX_CONFIG = 78;

/** Links to sample originals; a test requests each of them. */
const SAMPLE_LINKS = [
  '/avatars/1/ab12.webp?size=256',
  '/emojis/1473333333333333334.gif?size=64',
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=400&format=webp',
];

/** Maximum time that the log messages of the start wait for the test of the video decoder, in milliseconds. */
const VIDEO_TRIAL_MS = 3_000;

/**
 * Maximum number of connections waiting to be accepted; Linux allows 4096. After a restart, all clients connect at
 * once; those above Node's default of 511 would retry after a second.
 */
const BACKLOG = 4_096;

/**
 * Growth of the heap, including buffers, after which V8 collects it, in percent. From minute 5 to 30 of a mixed load
 * (`npm run soak`) with constant live data, the process grew by 7 %; with 200 by 15 %, with V8's default of four times
 * the heap by 18 %. Because originals in transit would make V8 collect a small heap constantly, `npm start` passes
 * `--initial-heap-size`, which reduces the CPU time of an avatar from 3.8 to 2.2 ms.
 */
const HEAP_GROWTH_PERCENT = 50;

let processLog: ProcessLog | undefined;

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const config = readConfig(process.env);
  const terminal = process.stdout.isTTY ? process.stdout : undefined;
  processLog = await createLog(config.log.level, config.secrets, terminal);
  const { log, countLost } = processLog;
  let app: App | undefined;
  stopOnSignals(() => app, config.shutdown.graceMs, log);
  // Node would print each warning to standard error, in several lines.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ warning: name }, message));
  const warnings = [...config.unknownSettings, ...config.unusedSettings];
  for (const { name: variable, message } of warnings) {
    log.warn({ variable }, message);
  }
  // Loaded after the limit of open files was checked, since loading opens many files at once.
  const { createApp } = await import('./app.ts');
  const created = await createApp(config, { log, requestLog: log, countLostLines: countLost });
  const { server, admin, internal } = created;
  for (const [name, listener, variable] of [
    ['admin', admin, 'ADMIN_PORT'],
    ['internal', internal, 'INTERNAL_PORT'],
  ] as const) {
    const settings = config[name];
    if (listener === undefined || settings === undefined) continue;
    await listener.listen(settings.listen).catch(namingPort(variable));
    const address = boundAddressOf(listener, 'http');
    log.info({ address }, `The ${name} listener is on ${address}`);
  }
  const reachable = await server
    .listen({ ...config.listen, backlog: BACKLOG })
    .catch(namingPort('PORT'));
  // Until here, a signal ends the process immediately, since it serves no client.
  app = created;
  await app.started;
  await Promise.race([app.videoSupport, sleep(VIDEO_TRIAL_MS, undefined, { ref: false })]);
  await logStart(app, config, log);
  // In production, standard error often goes to the same journal as the JSON log.
  const isForPeople = process.stderr.isTTY || process.env.NODE_ENV !== 'production';
  if (isForPeople && config.storage.isSample) {
    const links = SAMPLE_LINKS.map((link) => `  ${reachable}${link}`);
    const explorer = config.explorer.isOn ? `Look around: ${reachable}/\n` : '';
    process.stderr.write(
      `\nDarkroom serves its sample originals on ${reachable}\n${explorer}Try:\n${links.join('\n')}\n\n`,
    );
  }
}

/** Logs address, release and sandbox, and warns of risky settings. */
async function logStart(app: App, config: Config, log: Log): Promise<void> {
  const { release, renderer, explorer, rates, http } = config;
  const { server, confinement } = app;
  const address = boundAddressOf(server, http.tls === undefined ? 'http' : 'https');
  log.info(
    {
      address,
      ...release,
      node: process.version,
      workers: renderer.workers,
      memory: config.memory,
      confinement,
    },
    `Darkroom listens on ${address}`,
  );
  if (config.memory.isShort) {
    log.warn(config.memory, 'settings need more memory than available');
  }
  if (confinement !== undefined) {
    const { describeWorkers, listExposures } = await import('./workers/confinement/report.ts');
    const level = listExposures(confinement).length === 0 ? 'info' : 'warn';
    log[level]({ sandbox: confinement.sandbox }, describeWorkers(confinement));
  }
  void app.videoSupport.then((support) => logVideoSupport(support, log));
  if (explorer.isOn) log.info({ address }, `The explorer lists the originals on ${address}/`);
  if (explorer.isExposed) {
    log.warn(
      { address },
      'The explorer shows all originals, private attachments too, to anyone who reaches this address',
    );
  }
  if (rates !== undefined && http.trustProxy === true) {
    log.warn(
      { address },
      'With TRUST_PROXY=true, anyone who reaches this address can claim any client address: RATE_LIMIT_REQUESTS limits only honest clients. List the proxies instead',
    );
  }
}

async function logVideoSupport(support: VideoSupport, log: Log): Promise<void> {
  const { describeVideoSupport } = await import('./workers/video/video-decoder.ts');
  const isExpected = support.isSupported ? support.isWhole : !support.isFault;
  log[isExpected ? 'info' : 'warn']({ videoDecoder: support }, describeVideoSupport(support));
}

/** Returns the bound address of a listener; Fastify's `listen` returns a specific one for 0.0.0.0. */
function boundAddressOf(server: App['server'], scheme: 'http' | 'https'): string {
  const bound = server.server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server has no address.');
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${scheme}://${host}:${bound.port}`;
}

/**
 * Stops the service on SIGTERM, SIGINT or SIGHUP: waits for running requests, then exits with status 0. When the grace
 * period expires, and after a second signal or an uncaught error, aborts them and exits with status 1. Until the
 * service accepts clients, the first signal ends the process immediately. The workers are ended first, or end when
 * their channel closes.
 */
function stopOnSignals(
  findApp: () => App | undefined,
  graceMs: number,
  log: ProcessLog['log'],
): void {
  let isEnding = false;
  const end = (status: 0 | 1, signal?: NodeJS.Signals): void => {
    // An aborted `close` ends later, and must not change the status.
    if (isEnding) return;
    isEnding = true;
    if (status === 1) findApp()?.endWorkers();
    log.info({ status }, 'stopped');
    void exit(status, signal);
  };
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    log.info({ signal }, 'stopping');
    setTimeout(() => {
      log.warn({ graceMs }, 'grace period expired; aborting in-flight requests');
      end(1, signal);
    }, graceMs).unref();
    try {
      await findApp()?.close();
      end(0, signal);
    } catch (error) {
      log.error({ err: error }, 'stop failed');
      end(1, signal);
    }
  };
  handleStopSignals(
    process,
    (signal) => void stop(signal),
    (signal) => {
      log.warn({ signal }, 'stopped by a second signal; aborting in-flight requests');
      end(1, signal);
    },
  );
  process.on('uncaughtException', (error, kind) => {
    // Later errors may be consequences of the first.
    if (!isEnding) log.fatal({ err: error, kind }, 'uncaught error');
    end(1);
  });
}

/** Formats an invalid configuration: a line for each fault, then one for each warning. */
function describeFaults({ message, warnings }: ConfigError): string {
  const warned = warnings.map((each) => `Warning: ${each.message}`);
  return ['The configuration is not valid:', message, ...warned].join('\n');
}

/** Returns a handler that rethrows a listener's error; if the port is in use, the message names the variable. */
function namingPort(variable: 'PORT' | 'ADMIN_PORT' | 'INTERNAL_PORT') {
  return (error: Error & { readonly code?: string }): never => {
    if (error.code === 'EADDRINUSE') error.message += `; set ${variable}`;
    throw error;
  };
}

/**
 * Ends the process when its last log lines are written. If that write hangs, `process.exit` would wait for it, so the
 * process kills itself: for status 0 by the signal that stopped the service, which supervisors accept; else by SIGKILL.
 * Not covered: the first process of a container ignores its own signals, so the container runtime has to kill it.
 */
async function exit(status: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<never> {
  if ((await processLog?.flush()) === false) {
    process.removeAllListeners(signal);
    process.kill(process.pid, status === 0 ? signal : 'SIGKILL');
  }
  process.exit(status);
}

main().catch((error: unknown) => {
  const isFaulty = error instanceof ConfigError;
  const message = isFaulty ? describeFaults(error) : `Darkroom cannot start: ${String(error)}`;
  process.stderr.write(`${message}\n`);
  return exit(isFaulty ? EX_CONFIG : 1);
});
