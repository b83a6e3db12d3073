import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Environment } from '../../src/config/settings.ts';
import type { ClientLimits } from '../../src/http/edge/client-limits.ts';
import type {
  Clock,
  Log,
  Origin,
  Renderer,
  RenderOptions,
  ResultStore,
} from '../../src/pipeline/ports.ts';
import type { RenderJob } from '../../src/pipeline/render/render-job.ts';
import type { RequestLine, RequestLog } from '../../src/telemetry/request-log.ts';
import { WorkerPool } from '../../src/workers/worker-pool.ts';
import { MemoryOrigin } from './memory-origin.ts';
import { patient } from './patient.ts';

const workerFile = new URL('../../dist/workers/child/main.js', import.meta.url);

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

/** A clock that stands still until it is told to go on. */
export class FakeClock implements Clock {
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  advance(durationMs: number): void {
    this.#nowMs += durationMs;
  }
}

/** Keeps what the operator is told. */
export class RecordingLog implements Log {
  readonly entries: { readonly level: string; readonly details: object }[] = [];
  readonly info = (details: object): void => void this.entries.push({ level: 'info', details });
  readonly warn = (details: object): void => void this.entries.push({ level: 'warn', details });
  readonly error = (details: object): void => void this.entries.push({ level: 'error', details });

  /** What an operator would be woken for. */
  get errors(): readonly object[] {
    return this.entries.flatMap(({ level, details }) => (level === 'error' ? [details] : []));
  }
}

/** Keeps the lines that are told of requests. */
export class RecordingRequestLog implements RequestLog {
  readonly scope: RequestLog['scope'];
  readonly lines: RequestLine[] = [];

  constructor(scope: RequestLog['scope']) {
    this.scope = scope;
  }

  tell(line: RequestLine): void {
    this.lines.push(line);
  }
}

interface TestAppOptions {
  /** Settings besides the defaults. */
  readonly settings?: Environment;
  /** Is told of requests; without, nobody is. */
  readonly requestLog?: RequestLog;
  /** Instead of the memory; for origins that fail. */
  readonly origin?: Origin;
  /** Instead of a worker process; for renderers that fail or wait. */
  readonly renderer?: Renderer;
  /** Where renderings outlive the app. */
  readonly resultStore?: ResultStore;
  /** What clients may take, where it is not the usual. */
  readonly clientLimits?: Partial<ClientLimits>;
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
  readonly log: RecordingLog;
  /** The processes that render; none before the first render. */
  readonly workers: WorkerPool;
  /** Starts to listen on a free port of this machine, and tells it. */
  listen(): Promise<number>;
  close(): Promise<void>;
}

/** Puts the service together around originals in memory; renders in one real worker process. */
export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const originals = new MemoryOrigin();
  const clock = new FakeClock();
  const log = new RecordingLog();
  const config = readConfig({ WORKERS: '1', EXPLORER: 'off', ...patient, ...options.settings });
  const workers = new WorkerPool({ ...config.renderer, workerFile, log });
  let start: Promise<void> | undefined;
  const inWorker: Renderer = {
    render: async (original, job, options) => {
      start ??= workers.start(); // not before: most tests render nothing
      await start;
      return workers.render(original, job, options);
    },
  };
  const renderer = new CountingRenderer(options.renderer ?? inWorker);
  const { server, admin, close } = await createApp(config, {
    log,
    clock,
    origin: options.origin ?? originals,
    renderer,
    workerFile,
    ...(options.requestLog && { requestLog: options.requestLog }),
    ...(options.resultStore && { resultStore: options.resultStore }),
    ...(options.clientLimits && { clientLimits: options.clientLimits }),
  });
  return {
    server,
    admin,
    originals,
    renderer,
    clock,
    log,
    workers,
    listen: async () => {
      await server.listen({ host: '127.0.0.1', port: 0 });
      return (server.server.address() as AddressInfo).port;
    },
    close: async () => {
      // Of clients that do not close their connections, it takes leave for a time.
      const ticking = setInterval(() => clock.advance(1_000), 100);
      await close();
      clearInterval(ticking);
      workers.stop();
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
