import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { App } from './app.ts';
import { type Config, ConfigError, readConfig } from './config/config.ts';
import type { Log } from './pipeline/ports.ts';
import { handleStopSignals } from './stop-signals.ts';
import { createLog, type ProcessLog } from './telemetry/log.ts';
import type { VideoSupport } from './workers/video/video-decoder.ts';

/** Exit status of a faulty configuration (BSD `sysexits.h`, EX_CONFIG). */
const EX_CONFIG = 78;

/** Links to sample originals; a test requests each of them. */
const SAMPLE_LINKS = [
  '/avatars/1/ab12.webp?size=256',
  '/emojis/1473333333333333334.gif?size=64',
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=400&format=webp',
];

/** Time that the log of the start waits for the trial of the video decoder, in milliseconds; requests do not wait. */
const VIDEO_TRIAL_MS = 3_000;

/**
 * Connections that may wait to be accepted; the system has a bound of its own (Linux: 4096). After a start, all clients
 * connect at once, and those beyond Node's 511 would retry only after a second.
 */
const BACKLOG = 4_096;

/**
 * Growth of the heap, with the originals and results that it refers to, since the last collection, in percent. V8
 * allows four times the heap on a machine with much memory: under a mixed load (`npm run soak`), the process grew by 18 %
 * from minute 5 to 30 with the same live data; with 50 by 7 %, with 200 by 15 %. Passing originals would make V8 collect a
 * small heap all the time, so `npm start` gives Node `--initial-heap-size`: 2.2 ms of CPU for an avatar in this process
 * instead of 3.8.
 */
const HEAP_GROWTH_PERCENT = 50;

/** The log, once there is one: its last lines are written before the process ends. */
let processLog: ProcessLog | undefined;

async function main(): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const config = readConfig(process.env);
  processLog = await createProcessLog(config);
  const { log, countLost } = processLog;
  let app: App | undefined;
  stopOnSignals(() => app, config.shutdown.graceMs, log);
  // Node would print warnings to standard error, several lines each.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ warning: name }, message));
  const warnings = [...config.unknownSettings, ...config.unusedSettings];
  for (const { name: variable, message } of warnings) {
    log.warn({ variable }, message);
  }
  // Node opens many files at once to load it: a limit that is too low has been told by then.
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
  // A signal before this ends the process at once: no client is served yet.
  app = created;
  await app.started;
  // The log of the start is complete, unless the decoder takes longer than the workers by more than that.
  await Promise.race([app.videoSupport, sleep(VIDEO_TRIAL_MS, undefined, { ref: false })]);
  await logStart(app, config, log);
  // In production, standard error is often the same journal as the log in JSON.
  const hasReader = process.stderr.isTTY || process.env.NODE_ENV !== 'production';
  if (hasReader && config.storage.isSample) {
    const links = SAMPLE_LINKS.map((link) => `  ${reachable}${link}`);
    const look = config.explorer.isOn ? `Look around: ${reachable}/\n` : '';
    process.stderr.write(
      `\nDarkroom serves its sample originals on ${reachable}\n${look}Try:\n${links.join('\n')}\n\n`,
    );
  }
}

/** Logs address, release and sandbox, and warns of settings that an operator may have overlooked. */
async function logStart(app: App, config: Config, log: Log): Promise<void> {
  const { release, renderer, explorer, rates, http } = config;
  const { server, confinement } = app;
  const address = boundAddressOf(server, http.tls === undefined ? 'http' : 'https');
  log.info(
    {
      ...{ address, ...release, node: process.version },
      ...{ workers: renderer.workers, memory: config.memory, confinement },
    },
    `Darkroom listens on ${address}`,
  );
  if (config.memory.isShort) {
    log.warn(config.memory, 'the settings need more memory than there is');
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
      'The explorer shows all originals, private attachments too, to anybody who reaches this address',
    );
  }
  if (rates !== undefined && http.trustProxy === true) {
    log.warn(
      { address },
      'With TRUST_PROXY=true, anybody who reaches this address can claim any client address: RATE_LIMIT_REQUESTS limits only honest clients. Name the proxies',
    );
  }
}

async function logVideoSupport(support: VideoSupport, log: Log): Promise<void> {
  const { describeVideoSupport } = await import('./workers/video/video-decoder.ts');
  const isExpected = support.isSupported ? support.isWhole : !support.isFault;
  log[isExpected ? 'info' : 'warn']({ videoDecoder: support }, describeVideoSupport(support));
}

/** Creates the log, which redacts the secrets of the configuration. */
function createProcessLog({ log, secrets }: Config): Promise<ProcessLog> {
  return createLog({
    level: log.level,
    secrets,
    terminal: process.stdout.isTTY ? process.stdout : undefined,
  });
}

/** Returns the address of a listener as bound: for 0.0.0.0, Fastify returns one of the machine's addresses. */
function boundAddressOf(server: App['server'], scheme: 'http' | 'https'): string {
  const bound = server.server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server has no address.');
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${scheme}://${host}:${bound.port}`;
}

/**
 * Stops the service on SIGTERM, SIGINT or SIGHUP. Running requests get the grace time, and the exit status is 0; what has not
 * ended by then is cut off, and the status is 1. A second signal cuts off at once, as does an error that nobody caught.
 * Until there is an app that serves clients, the first signal ends the process at once.
 *
 * The workers end with the process, however it ends: they are ended first, or the channel to it closes.
 */
function stopOnSignals(
  findApp: () => App | undefined,
  graceMs: number,
  log: ProcessLog['log'],
): void {
  let isEnding = false;
  const end = (status: 0 | 1, signal?: NodeJS.Signals): void => {
    // Without its workers, the app is soon closed; that is no good end.
    if (isEnding) return;
    isEnding = true;
    if (status === 1) findApp()?.endWorkers();
    log.info({ status }, 'stopped');
    void exit(status, signal);
  };
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    log.info({ signal }, 'stopping');
    setTimeout(() => {
      log.warn({ graceMs }, 'the grace time is over; running requests are cut off');
      end(1, signal);
    }, graceMs).unref();
    try {
      await findApp()?.close();
      end(0, signal);
    } catch (error) {
      log.error({ err: error }, 'the stop failed');
      end(1, signal);
    }
  };
  handleStopSignals(
    process,
    (signal) => void stop(signal),
    (signal) => {
      log.warn({ signal }, 'stopped by a second signal; running requests are cut off');
      end(1, signal);
    },
  );
  process.on('uncaughtException', (error, kind) => {
    // The first one is the cause; the state that it leaves the process in is unknown.
    if (!isEnding) log.fatal({ err: error, kind }, 'uncaught error');
    end(1);
  });
}

/** Describes an invalid configuration: a line for each fault, then one for each variable without effect. */
function describeFaults({ message, warnings }: ConfigError): string {
  const warned = warnings.map((each) => `Warning: ${each.message}`);
  return ['The configuration is not valid:', message, ...warned].join('\n');
}

/** Returns a handler that rethrows an error of a listener, with the variable to set where its port is in use. */
function namingPort(variable: 'PORT' | 'ADMIN_PORT' | 'INTERNAL_PORT') {
  return (error: Error & { readonly code?: string }): never => {
    if (error.code === 'EADDRINUSE') error.message += `; set ${variable}`;
    throw error;
  };
}

/**
 * Ends the process once the last lines of its log are written. Node waits for a write that hangs, so in that case the
 * system ends the process: by the signal that stopped it, which supervisors take for a good end, or by SIGKILL if the
 * status is another one than 0.
 *
 * Not covered: the first process of a container, which no signal of its own ends; the container's runtime ends it.
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
