import { describe, expect, test } from 'vitest';
import { MemoryCache } from '../../../src/pipeline/memory-cache.ts';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';
import { MetadataCache } from '../../../src/pipeline/originals/metadata-cache.ts';
import type { Approach } from '../../../src/pipeline/originals/original-reader.ts';
import { Originals } from '../../../src/pipeline/originals/originals.ts';
import type { CachedOriginal } from '../../../src/pipeline/ports.ts';
import { RequestTrace } from '../../../src/pipeline/request-trace.ts';
import { Semaphore } from '../../../src/pipeline/semaphore.ts';
import { PrometheusMeter } from '../../../src/telemetry/prometheus-meter.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { FakeClock } from '../../support/test-app.ts';

const KEY = 'avatars/1/ab';
const FRESH_MS = 300_000;

/** Originals of an origin that has one object. */
function createOriginals(bytes: Uint8Array, cacheBytes = 0) {
  const [origin, clock] = [new MemoryOrigin(), new FakeClock()];
  origin.put(KEY, bytes);
  const budget = new MemoryBudget(10_000_000);
  const metadata = new MetadataCache({ freshForMs: FRESH_MS, goneForMs: 30_000 }, clock);
  const originals = new Originals({
    access: {
      origin,
      limits: { firstByteTimeoutMs: 1_000, wholeBodyTimeoutMs: 1_000, maxOriginalBytes: 1_000_000 },
      semaphore: new Semaphore({ slots: 1, maxWaiting: 0, maxWaitMs: 1_000 }),
    },
    external: undefined,
    budget,
    metadata,
    cache: new MemoryCache<CachedOriginal>({ maxBytes: cacheBytes, bytesOf: (it) => it.bytes }),
    clock,
    meter: new PrometheusMeter(),
  });
  const open = (signal = new AbortController().signal) =>
    originals.open({ originKey: KEY, url: undefined }, signal);
  return { origin, clock, budget, metadata, originals, open, trace: new RequestTrace(clock) };
}

const approaches = ['whole', 'first frames', 'identity'] as const satisfies readonly Approach[];

describe.each(approaches)('an original that is asked for by its %s', (approach) => {
  test.each([0, 1, 2, 500, 300_000])('is read, of %d bytes', async (length) => {
    const { budget, origin, open, trace } = createOriginals(Buffer.alloc(length, 7));
    const user = new AbortController();
    const original = open(user.signal);
    const { identity, wasAsked } = await original.identify(approach, trace);
    expect(wasAsked).toBe(true);
    expect(original.isInMemory).toBe(false);
    const held = await original.read();
    expect(Buffer.from(held.bytes).equals(Buffer.alloc(length, 7))).toBe(true);
    expect(held.etag).toBe(identity.etag);
    expect(budget.heldBytes).toBe(length);
    expect(origin.openBodies).toBe(0);
    user.abort();
    await expect.poll(() => budget.heldBytes).toBe(0);
  });

  test('is known by two words, without its body and socket', async () => {
    const { metadata, open, trace } = createOriginals(Buffer.alloc(500));
    const { identity } = await open().identify(approach, trace);
    for (const it of [identity, metadata.find(KEY)]) {
      expect(Object.keys(it ?? {}).sort()).toEqual(['etag', 'lastModified']);
    }
  });

  test('is asked for and read once for all, and held until the last has gone', async () => {
    const { budget, origin, open, trace } = createOriginals(Buffer.alloc(5_000));
    const users = [new AbortController(), new AbortController()];
    const readers = users.map(({ signal }) => open(signal));
    await Promise.all(readers.map((reader) => reader.identify(approach, trace)));
    await Promise.all(readers.map((reader) => reader.read()));
    expect(origin.reads.get(KEY)).toBe(approach === 'identity' ? 2 : 1);
    users[0]?.abort();
    await Promise.resolve();
    expect(budget.heldBytes).toBe(5_000);
    users[1]?.abort();
    await expect.poll(() => budget.heldBytes).toBe(0);
  });
});

describe('an original', () => {
  test('that was read lately is in memory, and asks nothing of the origin', async () => {
    const { origin, open, trace } = createOriginals(Buffer.alloc(500), 100_000);
    for (const isInMemory of [false, true]) {
      const user = new AbortController();
      const original = open(user.signal);
      await original.identify('identity', trace);
      expect(original.isInMemory).toBe(isInMemory);
      expect(await original.peek()).toEqual(isInMemory ? undefined : Buffer.alloc(500));
      expect((await original.read()).bytes).toHaveLength(500);
      user.abort();
    }
    expect(origin.reads.get(KEY)).toBe(2);
  });

  test('is peeked at once for all, and not at all when it is on its way', async () => {
    const { origin, open, trace } = createOriginals(Buffer.alloc(300_000));
    const original = open();
    await original.identify('identity', trace);
    const peeks = await Promise.all([original.peek(), original.peek()]);
    expect(peeks.map((bytes) => bytes?.length)).toEqual([256 * 1024, 256 * 1024]);
    expect(origin.reads.get(KEY)).toBe(2);
    const reading = original.read();
    expect(await original.peek()).toBeUndefined();
    await reading;

    const opened = createOriginals(Buffer.alloc(300_000));
    const whole = opened.open();
    await whole.identify('whole', opened.trace);
    expect(await whole.peek()).toBeUndefined();
    await whole.read();
    expect(opened.origin.reads.get(KEY)).toBe(1);
  });

  test('that was purged meanwhile is neither joined nor remembered', async () => {
    const { origin, metadata, originals, open, trace } = createOriginals(Buffer.alloc(5), 100_000);
    const before = open();
    const identifying = before.identify('identity', trace);
    originals.purge((key) => key === KEY);
    origin.put(KEY, Buffer.alloc(6));
    const after = open();
    expect(after).not.toBe(before);
    await identifying;
    expect(metadata.find(KEY)).toBeUndefined();
    await before.read();
    expect(metadata.find(KEY)).toBeUndefined();
    await after.identify('identity', trace);
    expect(after.isInMemory).toBe(false);
    expect((await after.read()).bytes).toHaveLength(6);
    originals.purge((key) => key !== KEY);
    expect(open()).toBe(after);
  });

  test('is not joined long after', async () => {
    const { clock, open } = createOriginals(Buffer.alloc(5));
    const first = open();
    expect(open()).toBe(first);
    clock.advance(5_000);
    expect(open()).not.toBe(first);
  });
});
