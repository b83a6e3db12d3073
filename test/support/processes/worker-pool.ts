import { readlinkSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import type { RangeReader, RenderSlot } from '../../../src/pipeline/ports.ts';
import { formatPacket } from '../../../src/workers/packets.ts';
import { type PoolDoubles, WorkerPool, type WorkerPoolOptions } from '../../../src/workers/pool.ts';
import { RecordedLog } from '../recorded-log.ts';
import { QueuedRenderer, type RenderOptions } from '../render-slots.ts';

const compiled = (file: string) => new URL(`../../../dist/${file}`, import.meta.url);

/** Worker that runs the command in the original; see `scripted-worker.mjs`, which `build.ts` bundles. */
export const SCRIPTED_WORKER = compiled('test-workers/scripted-worker.mjs');
export const REAL_WORKER = compiled('workers/child/main.js');
export const FORK_SERVER = compiled('workers/fork-server/main.js');

export type RenderJob = Parameters<RenderSlot['render']>[1];

export const anyJob: RenderJob = {
  animation: undefined,
  source: 'png',
  originalSize: { widthPx: 1, heightPx: 1 },
  orientation: 1,
  gamma: undefined,
  isRewrite: false,
  resize: 'none',
  shrinksOnLoad: false,
  size: { widthPx: 1, heightPx: 1 },
  format: 'png',
  quality: 'high',
  webpEffort: 4,
  maxInputPixels: 100_000_000,
  maxResultBytes: 1_000_000,
};

/** Counters of a pool that has lost no worker. */
export const noLosses = { restarts: 0, kills: 0, recycles: 0 };

const staying = new AbortController().signal;

const poolOptions: WorkerPoolOptions = {
  forkServerFile: FORK_SERVER,
  workers: { light: 1, heavy: 0 },
  memoryBytes: { light: 2 ** 30, heavy: 2 ** 30 },
  environment: { PATH: '/usr/bin:/bin' },
  videoDecoder: { program: 'off', mayBeWeaker: false, memoryBytes: 0, timeoutMs: 0 },
  log: new RecordedLog(),
  doubles: { workerFile: SCRIPTED_WORKER },
};

type TestPoolOptions = Partial<WorkerPoolOptions> & PoolDoubles;

export type TestPool = Awaited<ReturnType<ReturnType<typeof usePools>>>;

/** Creates a pool of one scripted light worker without starting it. */
export function createPool(): WorkerPool {
  return new WorkerPool(poolOptions);
}

/** Starts pools, by default of one scripted light worker, until the end of the test or, with `afterAll`, of the file. */
export function usePools(atEnd: typeof afterEach | typeof afterAll = afterEach) {
  const renderers: WorkerPool[] = [];
  atEnd(() => {
    for (const renderer of renderers.splice(0)) renderer.stop();
  });
  return async (options: TestPoolOptions = {}) => {
    const log = new RecordedLog();
    const renderer = new WorkerPool({
      ...poolOptions,
      log,
      ...options,
      doubles: { ...poolOptions.doubles, ...options },
    });
    renderers.push(renderer);
    await renderer.start();
    const queued = new QueuedRenderer(renderer);
    const names = new Map<string, number>();
    const usual = { lane: 'light', timeoutMs: 10_000, signal: staying } as const;
    const nameIn = async (response: Promise<Uint8Array>): Promise<string> => {
      learnNames(names, renderer.processIds);
      const text = Buffer.from(await response).toString();
      learnNames(names, renderer.processIds);
      return text.replace(/^#(\d+)/, (_, name: string) => String(names.get(name)));
    };
    return {
      renderer,
      log,
      /** Sends a command to a scripted worker; resolves with its response as text. */
      say: (command: string, options?: Partial<RenderOptions>) =>
        nameIn(queued.render(Buffer.from(command), anyJob, { ...usual, ...options })),
      /** Like `say`, but the worker reads the command by ranges. */
      sayByRanges: (command: string | RangeReader, options?: Partial<RenderOptions>) => {
        const reader = typeof command === 'string' ? readerOf(command) : command;
        return nameIn(queued.render(reader, anyJob, { ...usual, ...options }));
      },
      /** Like `say`, but the command is a file whose metadata is read. */
      inspect: (command: string) => queued.inspect(readerOf(command), usual),
      /** Renders in a real worker, with a long timeout. */
      render: (original: Uint8Array, job: RenderJob) =>
        queued.render(original, job, { ...usual, timeoutMs: 60_000 }),
    };
  };
}

/** Command to a scripted worker to send these messages, valid or not. */
export function raw(...headers: readonly object[]): string {
  const pieces = headers.flatMap((header) => formatPacket(header));
  return `raw ${Buffer.concat(pieces).toString('hex')}`;
}

/** Shares a pool between the tests of a block. Before each test, all workers are ready, and counters and log are reset. */
export function sharePool(options: TestPoolOptions = {}) {
  const start = usePools(afterAll);
  let pool: TestPool;
  beforeAll(async () => {
    pool = await start(options);
  });
  beforeEach(async () => {
    const { slots, counters } = pool.renderer;
    const kept = [...slots.light, ...slots.heavy.slice(0, 1)];
    const isReady = () => kept.every((slot) => slot.isReady);
    await vi.waitUntil(isReady, { timeout: 20_000 });
    Object.assign(counters, noLosses);
    pool.log.entries.length = 0;
  });
  return {
    get pool() {
      return pool;
    },
    counted: () => pool.renderer.counters,
  };
}

/** Reader of a command; `later` replaces all reads but the first. */
export function readerOf(command: string, later?: (signal: AbortSignal) => Promise<Uint8Array>) {
  const bytes = Buffer.from(command);
  let reads = 0;
  return {
    sizeBytes: bytes.length,
    read: async (start: number, end: number, signal: AbortSignal): Promise<Uint8Array> => {
      reads += 1;
      return reads > 1 && later ? later(signal) : bytes.subarray(start, end);
    },
    count: () => reads,
  };
}

/** Maps the names of scripted workers, the inodes of their channels, to process ids. */
function learnNames(names: Map<string, number>, processIds: readonly number[]): void {
  for (const processId of processIds) {
    try {
      names.set(readlinkSync(`/proc/${processId}/fd/3`).replace(/\D/g, ''), processId);
    } catch {
      // The worker starts or has just exited, or this is not Linux.
    }
  }
}
