import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { createApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import type { Environment } from '../../src/config/setting.ts';
import type { ClientLimits } from '../../src/http/edge/client-limits.ts';
import type { OriginalWriter } from '../../src/pipeline/originals/original-writer.ts';
import type {
  Clock,
  Log,
  Origin,
  Renderer,
  RenderOptions,
  ResultStore,
} from '../../src/pipeline/ports.ts';
import type { RenderJob } from '../../src/pipeline/render/render-job.ts';
import type { UploadLimits } from '../../src/pipeline/uploads/upload-service.ts';
import type { SiteDoubles } from '../../src/storage/remote/open-sites.ts';
import type { RequestLine, RequestLog } from '../../src/telemetry/request-log.ts';
import { WorkerPool } from '../../src/workers/worker-pool.ts';
import { MemoryOrigin } from './memory-origin.ts';
import { patient } from './patient.ts';
import { STARTER } from './processes/worker-pool.ts';
import { RecordedLog } from './recorded-log.ts';

const workerFiles = { starterFile: STARTER };

const usualSettings: Environment = { WORKERS: '1', EXPLORER: 'off', ...patient };
const usualConfig = readConfig(usualSettings);

/** Counts the jobs that go through it. */
export class CountingRenderer implements Renderer {
  readonly #inner: Renderer;
  renders = 0;

  constructor(inner: Renderer) {
    this.#inner = inner;
  }

  render(original: Uint8Array, job: RenderJob, options: RenderOptions): Promise<Uint8Array> {
    this.renders += 1;
    return this.#inner.render(original, job, options);
  }
}

/** A clock that stands still until it is advanced. */
export class FakeClock implements Clock {
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  advance(durationMs: number): void {
    this.#nowMs += durationMs;
  }
}

/** Keeps the lines on requests, from a level on. */
export class RecordingRequestLog implements RequestLog {
  readonly lines: RequestLine[] = [];
  readonly #level: 'debug' | 'info' | 'silent';

  constructor(level: 'debug' | 'info' | 'silent') {
    this.#level = level;
  }

  isLevelEnabled(level: 'debug' | 'info'): boolean {
    return this.#level === 'debug' || this.#level === level;
  }

  debug(line: RequestLine): void {
    this.lines.push(line);
  }

  info(line: RequestLine): void {
    this.lines.push(line);
  }
}

interface TestAppOptions {
  /** Settings besides the defaults. */
  readonly settings?: Environment;
  /** Without one, requests are not logged. */
  readonly requestLog?: RequestLog;
  /** Instead of the memory; for origins that fail. */
  readonly origin?: Origin;
  /** Instead of a worker process; for renderers that fail or wait. */
  readonly renderer?: Renderer;
  /** Where renderings outlive the app. */
  readonly resultStore?: ResultStore;
  /** What clients may take, where it is not the usual. */
  readonly clientLimits?: Partial<ClientLimits>;
  /** How other sites are reached. */
  readonly siteDoubles?: SiteDoubles;
  /** Instead of the storage of the settings; for writers that fail. */
  readonly originalWriter?: OriginalWriter;
  /** What uploads may take, where it is not the usual. */
  readonly uploadLimits?: Partial<UploadLimits>;
  /** Milliseconds since 1970, where they are not those of this machine. */
  readonly wallClock?: () => number;
}

/** The service, in a world that a test can hold in its hand. */
export interface TestApp {
  readonly server: FastifyInstance;
  /** There where the settings ask for it. */
  readonly admin: FastifyInstance | undefined;
  /** Empty at first; unused where the test brought its own. */
  readonly originals: MemoryOrigin;
  readonly renderer: CountingRenderer;
  readonly clock: FakeClock;
  readonly log: RecordedLog;
  /** The processes that render; none before the first render. */
  readonly workers: WorkerPool;
  /** Starts to listen on a free port of this machine, and returns it. */
  listen(): Promise<number>;
  close(): Promise<void>;
}

/** Workers that start with their first render: most tests render nothing. */
class LazyWorkers implements Renderer {
  readonly pool: WorkerPool;
  #start: Promise<void> | undefined;

  constructor(options: Config['renderer'], log: Log) {
    this.pool = new WorkerPool({ ...options, ...workerFiles, log });
  }

  async render(original: Uint8Array, job: RenderJob, options: RenderOptions): Promise<Uint8Array> {
    this.#start ??= this.pool.start();
    await this.#start;
    return this.pool.render(original, job, options);
  }
}

let latestLog = new RecordedLog();

/**
 * The worker process of all apps whose settings say nothing of workers, since its start takes longer
 * than most tests. It ends with the process of the tests, whose end it sees on its pipe.
 */
const usualWorkers = new LazyWorkers(usualConfig.renderer, {
  info: (details, message) => latestLog.info(details, message),
  warn: (details, message) => latestLog.warn(details, message),
  error: (details, message) => latestLog.error(details, message),
});

/** Puts the service together around originals in memory; renders in one real worker process. */
export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const originals = new MemoryOrigin();
  const clock = new FakeClock();
  const log = new RecordedLog();
  const config = readConfig({ ...usualSettings, ...options.settings });
  const workers = isDeepStrictEqual(config.renderer, usualConfig.renderer)
    ? usualWorkers
    : new LazyWorkers(config.renderer, log);
  latestLog = log;
  const renderer = new CountingRenderer(options.renderer ?? workers);
  const { server, admin, close } = await createApp(config, {
    log,
    clock,
    origin: options.origin ?? originals,
    renderer,
    workerFiles,
    ...(options.requestLog && { requestLog: options.requestLog }),
    ...(options.resultStore && { resultStore: options.resultStore }),
    ...(options.clientLimits && { clientLimits: options.clientLimits }),
    ...(options.siteDoubles && { siteDoubles: options.siteDoubles }),
    ...(options.originalWriter && { originalWriter: options.originalWriter }),
    ...(options.uploadLimits && { uploadLimits: options.uploadLimits }),
    ...(options.wallClock && { wallClock: options.wallClock }),
  });
  return {
    server,
    admin,
    originals,
    renderer,
    clock,
    log,
    workers: workers.pool,
    listen: async () => {
      await server.listen({ host: '127.0.0.1', port: 0 });
      return (server.server.address() as AddressInfo).port;
    },
    close: async () => {
      // Of clients that do not close their connections, it takes leave for a time.
      const ticking = setInterval(() => clock.advance(1_000), 100);
      await close();
      clearInterval(ticking);
      if (workers !== usualWorkers) workers.pool.stop();
    },
  };
}

/** A sample original by its origin key. */
export function readSample(key: string): Buffer {
  return readFileSync(new URL(`../../fixtures/originals/${key}`, import.meta.url));
}

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
