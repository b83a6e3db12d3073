import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MemoryCache } from '../../../src/pipeline/memory-cache.ts';
import { createStorageBackend } from '../../../src/pipeline/originals/backend.ts';
import { DetailStore } from '../../../src/pipeline/originals/detail-store.ts';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';
import { Originals } from '../../../src/pipeline/originals/originals.ts';
import { OriginalRecords } from '../../../src/pipeline/originals/records.ts';
import type { CachedOriginal, MediaResult } from '../../../src/pipeline/ports.ts';
import { RequestTrace } from '../../../src/pipeline/request-trace.ts';
import { Semaphore } from '../../../src/pipeline/semaphore.ts';
import type { Services } from '../../../src/pipeline/services.ts';

const MEBIBYTE = 1024 * 1024;

test('admits an original above the budget while others occupy less than half of it', () => {
  const budget = new MemoryBudget(16 * MEBIBYTE);
  const small = budget.reserve(7 * MEBIBYTE);
  const large = budget.reserve(50 * MEBIBYTE);
  large.countAgainst('heavy');
  expect(() => budget.reserve(2 * MEBIBYTE)).toThrow();
  large.free();
  const other = budget.reserve(2 * MEBIBYTE);
  expect(() => budget.reserve(50 * MEBIBYTE)).toThrow();
  small.free();
  other.free();
  expect(budget.heldBytes).toBe(0);
});

// Rejections and sharing: test/http/overload.test.ts.
test('a freed reservation ignores further calls', () => {
  const budget = new MemoryBudget(100 * MEBIBYTE);
  const freed = budget.reserve(60 * MEBIBYTE);
  for (let time = 0; time < 2; time += 1) freed.free();
  freed.countAgainst('heavy');
  freed.grow(70 * MEBIBYTE);
  expect(budget.heldBytes).toBe(0);
  expect(() => budget.reserve(50 * MEBIBYTE).countAgainst('heavy')).not.toThrow();
});

const SIZE_BYTES = 3 * 2 ** 20;

/** Microtasks from the end of the body until the client disconnects; some fall between two steps of the read. */
const HOPS = Array.from({ length: 40 }, (_, hops) => hops);

test.each(HOPS)(
  'frees the memory of an original if its client leaves %i microtasks after its last byte',
  async (hops) => {
    const clock = { nowMs: () => performance.now() };
    const budget = new MemoryBudget(64 * 2 ** 20);
    const records = new OriginalRecords({ freshForMs: 0, missingForMs: 0 }, clock);
    const body = new Readable({ read: () => undefined });
    const opened = { sizeBytes: SIZE_BYTES, etag: 'e', lastModified: undefined, part: undefined };
    const semaphore = () => new Semaphore({ slots: 4, maxWaiting: 4, maxWaitMs: 1_000 });
    const storage = createStorageBackend(
      { identity: 'tag', open: async () => ({ ...opened, body }) },
      { firstByteTimeoutMs: 5_000, bodyTimeoutMs: 5_000, maxOriginalBytes: 2 * SIZE_BYTES },
      { reads: semaphore(), streams: semaphore() },
    );
    const services = {
      storage,
      records,
      details: new DetailStore(records, undefined, ''),
      originalsBudget: budget,
      caches: {
        originals: new MemoryCache<CachedOriginal>(0),
        results: new MemoryCache<MediaResult>(0),
      },
      maxRangeBytes: SIZE_BYTES,
      closing: new AbortController().signal,
      clock,
      meter: { count: () => undefined } as never,
    } satisfies Partial<Services>;
    const originals = new Originals(services as unknown as Services);
    const flight = originals.join({ originKey: 'attachments/1/2/a' });
    const trace = new RequestTrace(clock);
    await flight.work.identify(trace, 'bytes');
    const loading = flight.work.load().catch(() => undefined);
    body.push(Buffer.alloc(SIZE_BYTES - 10));
    await nextTurn();
    await nextTurn();
    expect(budget.heldBytes).toBe(SIZE_BYTES);
    body.on('end', async () => {
      for (let hop = 0; hop < hops; hop += 1) await undefined;
      flight.leave();
    });
    body.push(Buffer.alloc(10));
    body.push(null);
    await loading;
    await nextTurn();
    expect(budget.heldBytes).toBe(0);
  },
);
