import { readFileSync } from 'node:fs';
import type { AddressInfo, Socket } from 'node:net';
import { isDeepStrictEqual, promisify } from 'node:util';
import type { InjectOptions } from 'fastify';
import { beforeAll, expect, onTestFinished } from 'vitest';
import { type AppParts, createApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import type { Environment } from '../../src/config/setting.ts';
import type { Clock, Log } from '../../src/pipeline/ports.ts';
import { WorkerPool } from '../../src/workers/pool.ts';
import { atEnd } from './at-end.ts';
import { type ConnectOptions, connectTo, sendRaw } from './http/raw-http.ts';
import { MemoryOrigin } from './memory-origin.ts';
import { patient } from './patient.ts';
import { FORK_SERVER } from './processes/worker-pool.ts';
import { RecordedLog } from './recorded-log.ts';
import { createSlots, type LaneRenderer, QueuedRenderer } from './render-slots.ts';

const workerFiles = { forkServerFile: FORK_SERVER };

const usualSettings: Environment = { WORKERS: '1', EXPLORER: 'off', ...patient };

/** Settings of an app that makes posters: the decoder is the one on `PATH`. */
export const withDecoder: Environment = { PATH: process.env.PATH ?? '' };

/** A line of the log on a request that is over. */
export type RequestLine = Parameters<NonNullable<AppParts['requestLog']>['info']>[0];

/** A clock that stands still until it is advanced; who sleeps by it wakes up then. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Map<() => void, number>();

  nowMs(): number {
    return this.#nowMs;
  }

  advance(durationMs: number): void {
    this.#nowMs += durationMs;
    for (const [wake, untilMs] of this.#sleepers) if (untilMs <= this.#nowMs) wake();
  }

  /** Goes on to the moment at which the first sleeper wakes up. */
  advanceToNext(): void {
    this.advance(Math.max(0, Math.min(...this.#sleepers.values()) - this.#nowMs));
  }

  readonly sleep: NonNullable<AppParts['sleep']> = (durationMs, signal) =>
    new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      if (signal.aborted) return resolve();
      this.#sleepers.set(wake, this.#nowMs + durationMs);
      signal.addEventListener('abort', wake, { once: true });
    });
}

/** The parts of an app that a test may bring, instead of the memory and a worker process. */
export type TestAppOptions = Pick<
  AppParts,
  'origin' | 'resultStore' | 'clientLimits' | 'siteDoubles' | 'wallClock'
> &
  Pick<AppParts, 'originalWriter' | 'uploadLimits' | 'objects' | 'sleep'> & {
    /** One that several apps share. */
    readonly clock?: FakeClock;
    readonly renderer?: LaneRenderer;
    /** Settings besides the defaults. */
    readonly settings?: Environment;
    /** From which level on requests are logged; without one, they are not. */
    readonly logged?: 'debug' | 'info';
  };

type Headers = Readonly<Record<string, string>>;

/** The service, in a world that a test can hold in its hand. */
export type TestApp = Awaited<ReturnType<typeof createTestApp>>;

/** Workers that start with their first render: most tests render nothing. */
function createWorkers(options: Config['renderer'], log: Log) {
  const pool = new WorkerPool({ ...options, ...workerFiles, log });
  return { pool, renderer: new QueuedRenderer(pool, () => pool.start()) };
}

let latestLog = new RecordedLog();

/**
 * The worker processes of all apps whose settings say nothing of workers, without and with a decoder, since their start
 * takes longer than most tests. They end with the process of the tests, whose end they see on their pipes.
 */
const sharedWorkers = [usualSettings, { ...usualSettings, ...withDecoder }].map((settings) => {
  const options = readConfig(settings).renderer;
  const workers = createWorkers(options, {
    info: (details, message) => latestLog.info(details, message),
    warn: (details, message) => latestLog.warn(details, message),
    error: (details, message) => latestLog.error(details, message),
  });
  return { options, workers };
});

/** Puts the service together around originals in memory; renders in one real worker process. */
export async function createTestApp({
  settings = {},
  logged,
  origin,
  renderer: brought,
  clock = new FakeClock(),
  clientLimits,
  ...parts
}: TestAppOptions = {}) {
  const originals = new MemoryOrigin();
  const log = new RecordedLog();
  const requests: RequestLine[] = [];
  const keep = (line: RequestLine): void => void requests.push(line);
  const isLevelEnabled = (level: string): boolean => logged === 'debug' || logged === level;
  const config = readConfig({ ...usualSettings, ...settings });
  const shared = sharedWorkers.find(({ options }) => isDeepStrictEqual(options, config.renderer));
  const workers = shared?.workers ?? createWorkers(config.renderer, log);
  latestLog = log;
  const renderer = createSlots(brought ?? workers.renderer, config.renderer.workers);
  const { server, admin, internal, close } = await createApp(config, {
    ...parts,
    ...{ log, clock, workerFiles, clientLimits: { idleGraceMs: 0, ...clientLimits } },
    renderer,
    origin: origin ?? originals,
    ...(logged && { requestLog: { isLevelEnabled, debug: keep, info: keep } }),
  });
  const listen = async (): Promise<number> => {
    if (!server.server.listening) await server.listen({ host: '127.0.0.1', port: 0 });
    return (server.server.address() as AddressInfo).port;
  };
  const get = (url: string, headers: Headers = {}) => server.inject({ url, headers });
  const isTls = config.http.tls !== undefined;
  const connect = async (options?: ConnectOptions): Promise<Socket> => {
    const socket = await connectTo(await listen(), { isTls, ...options });
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  let served = 1_000_000;
  return {
    server,
    /** There where the settings ask for it. */
    admin,
    /** The same of the listener for the platform's API. */
    internal,
    /** Empty at first; unused where the test brought its own. */
    originals,
    renderer,
    clock,
    log,
    requests,
    /** The processes that render; none before the first render. */
    workers: workers.pool,
    get,
    /**
     * Asks for an original that is put behind a path; `{id}` in it becomes a number of its own, so that
     * nothing is remembered of it.
     */
    serve: (original: Uint8Array, path: string) => {
      served += 1;
      const url = path.replace('{id}', String(served));
      const [key = ''] = url.slice(1).split('?');
      originals.put(key.startsWith('attachments/') ? key : key.replace(/\.\w+$/, ''), original);
      return get(url);
    },
    /** Asks the admin listener, which must be there. */
    requestAdmin: async (url: string, options: InjectOptions = {}) =>
      (await admin?.inject({ ...options, url })) ?? expect.fail('there is no admin listener'),
    /** Listens on a free port of this machine from the first call on, and returns it. */
    listen,
    /** Connects by TLS where the settings ask for it. */
    connect,
    /** Opens a connection, asks for something by it, and leaves the rest to the caller. */
    begin: async (target: string, options?: ConnectOptions) => {
      const socket = await connect(options);
      socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      return socket;
    },
    /** Connections, as the server sees them. */
    countConnections: promisify(server.server.getConnections.bind(server.server)),
    /** Sends a request over a connection of its own, to the end of the response. */
    send: async (method: string, target: string, headers?: Headers, body?: string) =>
      sendRaw(await listen(), method, target, headers, body, { isTls }),
    close: async (): Promise<void> => {
      // Of clients that do not close their connections, it takes leave for a time.
      const ticking = setInterval(() => clock.advance(1_000), 100);
      await close();
      clearInterval(ticking);
      if (shared === undefined) workers.pool.stop();
    },
  };
}

/** The same, until the end of the test, or of the file's tests. */
export async function useTestApp(options?: TestAppOptions): Promise<TestApp> {
  const app = await createTestApp(options);
  atEnd(app.close);
  return app;
}

/** One app for all tests of a block, which is there as soon as its hooks have run. */
export function shareTestApp(options?: TestAppOptions): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => Object.assign(app, await createTestApp(options)).close);
  return app;
}

/** A sample original by its origin key. */
export const readSample = (key: string): Buffer => readFileSync(`fixtures/originals/${key}`);

/** Small samples of each kind, by what they are. */
export const samples = {
  jpeg: readSample('icons/1/ab12'),
  png: readSample('emojis/1'),
  webp: readSample('splashes/1/ab12'),
  animatedGif: readSample('avatars/2/cd34'),
  mp4: readSample('attachments/1/15/clip.mp4'),
  text: readSample('attachments/1/14/romeo.txt'),
  pdf: readSample('attachments/1/13/minutes.pdf'),
  html: readSample('attachments/1/20/page.html'),
  svg: readSample('attachments/1/21/cat.svg'),
} as const;
