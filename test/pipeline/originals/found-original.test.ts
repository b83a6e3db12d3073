import { expect, test } from 'vitest';
import {
  type FoundOriginal,
  findByOpening,
  findByPrefix,
  type OriginalSource,
} from '../../../src/pipeline/originals/found-original.ts';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';
import { Semaphore } from '../../../src/pipeline/semaphore.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';

const { signal } = new AbortController();

function createSource(bytes: Uint8Array): OriginalSource {
  const origin = new MemoryOrigin();
  origin.put('a', bytes);
  return {
    access: {
      origin,
      limits: { firstByteTimeoutMs: 1_000, wholeBodyTimeoutMs: 1_000, maxOriginalBytes: 1_000_000 },
      gate: new Semaphore({ slots: 1, maxWaiting: 0, maxWaitMs: 1_000 }),
    },
    budget: new MemoryBudget(10_000_000),
  };
}

test.each<[string, (source: OriginalSource) => Promise<FoundOriginal>]>([
  ['by opening it', (source) => findByOpening(source, 'a', signal)],
  ['by its first byte', (source) => findByPrefix(source, 'a', 1, signal)],
  ['by all its bytes', (source) => findByPrefix(source, 'a', 1_000, signal)],
])('an original found %s is known by two words, without its body and socket', async (_, find) => {
  const source = createSource(Buffer.alloc(500, 7));
  const found = await find(source);
  const held = await found.hold();
  for (const { identity } of [found, held]) {
    expect(Object.keys(identity).sort()).toEqual(['etag', 'lastModified']);
  }
  expect(Buffer.from(held.bytes).equals(Buffer.alloc(500, 7))).toBe(true);
  expect(source.budget.heldBytes).toBe(500);
  held.release();
  expect(source.budget.heldBytes).toBe(0);
});

test.each([0, 1, 2])('an original of %d bytes is found by its first byte', async (length) => {
  const found = await findByPrefix(createSource(Buffer.alloc(length)), 'a', 1, signal);
  expect((await found.hold()).bytes).toHaveLength(length);
});
