import { readlinkSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import type { RangeReader, RenderSlot } from '../../../src/pipeline/ports.ts';
import { formatPacket } from '../../../src/workers/packets.ts';
import { type PoolDoubles, WorkerPool, type WorkerPoolOptions } from '../../../src/workers/pool.ts';
import { RecordedLog } from '../recorded-log.ts';
import { QueuedRenderer, type RenderOptions } from '../render-slots.ts';

const compiled = (file: string) => new URL(`../../../dist/${file}`, import.meta.url);

/** A worker that does what the original says; see `scripted-worker.mjs`, which `build.ts` bundles. */
export const SCRIPTED_WORKER = compiled('test-workers/scripted-worker.mjs');
export const REAL_WORKER = compiled('workers/child/main.js');
export const FORK_SERVER = compiled('workers/fork-server/main.js');

/** What a worker is told to do. */
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

/** What is counted of a pool that has lost no worker. */
export const unharmed = { restarts: 0, kills: 0, recycles: 0 };

/** Of a client that stays. */
const staying = new AbortController().signal;

/** Of a pool of one scripted light worker. */
const poolOptions: WorkerPoolOptions = {
  forkServerFile: FORK_SERVER,
  workers: { light: 1, heavy: 0 },
  memoryBytes: { light: 2 ** 30, heavy: 2 ** 30 },
  environment: { PATH: '/usr/bin:/bin' },
  videoDecoder: { program: 'off', mayBeWeaker: false, memoryBytes: 0, timeoutMs: 0 },
  log: new RecordedLog(),
  doubles: { workerFile: SCRIPTED_WORKER },
};

/** Options of a test's pool, with its doubles among them. */
type TestPoolOptions = Partial<WorkerPoolOptions> & PoolDoubles;

/** A pool of a test, with what it has logged. */
export type TestPool = Awaited<ReturnType<ReturnType<typeof usePools>>>;

/** Makes a pool of one scripted light worker, which is not started. */
export function createPool(): WorkerPool {
  return new WorkerPool(poolOptions);
}

/**
 * Starts pools of one scripted light worker, where the options name no others. They end with their test, or after all
 * tests of a file with `afterAll`.
 */
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
      /** Has a scripted worker do something; resolves with its response as text. */
      say: (command: string, options?: Partial<RenderOptions>) =>
        nameIn(queued.render(Buffer.from(command), anyJob, { ...usual, ...options })),
      /** The same, with a command that the worker must read by ranges, perhaps from another reader. */
      sayByRanges: (command: string | RangeReader, options?: Partial<RenderOptions>) => {
        const reader = typeof command === 'string' ? readerOf(command) : command;
        return nameIn(queued.render(reader, anyJob, { ...usual, ...options }));
      },
      /** The same as the facts of a file. */
      inspect: (command: string) => queued.inspect(readerOf(command), usual),
      /** Has a real worker render, in no hurry. */
      render: (original: Uint8Array, job: RenderJob) =>
        queued.render(original, job, { ...usual, timeoutMs: 60_000 }),
    };
  };
}

/** Command to a scripted worker to send these messages at once, whatever they are. */
export function raw(...headers: readonly object[]): string {
  const pieces = headers.flatMap((header) => formatPacket(header));
  return `raw ${Buffer.concat(pieces).toString('hex')}`;
}

/**
 * Has all tests of a block share a pool, in each of which all workers are ready at first, and what is counted and logged
 * begins anew.
 */
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
    Object.assign(counters, unharmed);
    pool.log.entries.length = 0;
  });
  return {
    get pool() {
      return pool;
    },
    /** What happened to workers in this test. */
    counted: () => pool.renderer.counters,
  };
}

/** Reader of a command, whose later reads may be another matter. */
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

/** By what scripted workers call themselves: the name of their channel, which is another one's at another end. */
function learnNames(names: Map<string, number>, processIds: readonly number[]): void {
  for (const processId of processIds) {
    try {
      names.set(readlinkSync(`/proc/${processId}/fd/3`).replace(/\D/g, ''), processId);
    } catch {
      // It starts or has just ended, or this is no Linux.
    }
  }
}
