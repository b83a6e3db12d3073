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

/** Settings of an app with posters, whose decoder is on `PATH`. */
export const withDecoder: Environment = { PATH: process.env.PATH ?? '' };

export type RequestLine = Parameters<NonNullable<AppParts['requestLog']>['info']>[0];

/** A clock that only tests advance. */
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

  /** Advances to the time at which the first sleeper wakes. */
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

/** Parts of an app that a test can replace. By default, originals are in memory and a worker process renders them. */
export type TestAppOptions = Pick<
  AppParts,
  'origin' | 'resultStore' | 'clientLimits' | 'siteDoubles' | 'wallClock'
> &
  Pick<AppParts, 'originalWriter' | 'uploadLimits' | 'objects' | 'sleep'> & {
    /** A clock that several apps can share. */
    readonly clock?: FakeClock;
    readonly renderer?: LaneRenderer;
    /** Settings in addition to those of most tests. */
    readonly settings?: Environment;
    /** Minimum level of logged requests. Omit to log none. */
    readonly logged?: 'debug' | 'info';
  };

type Headers = Readonly<Record<string, string>>;

/** The service with doubles for storage, clock and log. */
export type TestApp = Awaited<ReturnType<typeof createTestApp>>;

/** Creates workers that start with their first render, because most tests render nothing. */
function createWorkers(options: Config['renderer'], log: Log) {
  const pool = new WorkerPool({ ...options, ...workerFiles, log });
  return { pool, renderer: new QueuedRenderer(pool, () => pool.start()) };
}

let latestLog = new RecordedLog();

/**
 * Workers that all apps with default settings of workers share, without and with a decoder: their start takes longer than
 * most tests. They exit with the tests' process, when their pipes close.
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

/** Creates the service with originals in memory and, by default, one real worker process. */
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
    /** The admin listener, if the settings enable it. */
    admin,
    /** The listener for the platform's API, if the settings enable it. */
    internal,
    /** Empty at first; unused if the test has its own origin. */
    originals,
    renderer,
    clock,
    log,
    requests,
    workers: workers.pool,
    get,
    /** Stores an original and requests it; `{id}` in the path becomes a new number, so nothing is cached. */
    serve: (original: Uint8Array, path: string) => {
      served += 1;
      const url = path.replace('{id}', String(served));
      const [key = ''] = url.slice(1).split('?');
      originals.put(key.startsWith('attachments/') ? key : key.replace(/\.\w+$/, ''), original);
      return get(url);
    },
    /** Sends a request to the admin listener, which must be enabled. */
    requestAdmin: async (url: string, options: InjectOptions = {}) =>
      (await admin?.inject({ ...options, url })) ?? expect.fail('there is no admin listener'),
    /** Returns the port; the first call starts listening on a free one. */
    listen,
    /** Opens a connection, with TLS if the settings enable it. */
    connect,
    /** Opens a connection and sends a request, without reading the response. */
    begin: async (target: string, options?: ConnectOptions) => {
      const socket = await connect(options);
      socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      return socket;
    },
    /** Counts the connections that the server sees. */
    countConnections: promisify(server.server.getConnections.bind(server.server)),
    /** Sends a request over a new connection, and reads the complete response. */
    send: async (method: string, target: string, headers?: Headers, body?: string) =>
      sendRaw(await listen(), method, target, headers, body, { isTls }),
    close: async (): Promise<void> => {
      // Closing waits some time for clients that keep their connections.
      const ticking = setInterval(() => clock.advance(1_000), 100);
      await close();
      clearInterval(ticking);
      if (shared === undefined) workers.pool.stop();
    },
  };
}

/** Creates the service until the end of the test or file. */
export async function useTestApp(options?: TestAppOptions): Promise<TestApp> {
  const app = await createTestApp(options);
  atEnd(app.close);
  return app;
}

/** Returns one app for all tests of a block; its properties exist after the hooks have run. */
export function shareTestApp(options?: TestAppOptions): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => Object.assign(app, await createTestApp(options)).close);
  return app;
}

/** Reads a sample original by its key. */
export const readSample = (key: string): Buffer => readFileSync(`fixtures/originals/${key}`);

/** A small sample of each type. */
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
