import { describe, expect, it } from 'vitest';
import { MemoryBudget } from '../../../src/pipeline/originals/memory-budget.ts';
import { OriginalDescriber } from '../../../src/pipeline/originals/original-description.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples } from '../../support/test-app.ts';

const limits = { firstByteTimeoutMs: 1000, wholeBodyTimeoutMs: 1000, maxOriginalBytes: 10_000_000 };
const { signal } = new AbortController();

function describeFrom(maxOriginalBytes = limits.maxOriginalBytes) {
  const origin = new MemoryOrigin();
  const budget = new MemoryBudget(100_000_000);
  const describer = new OriginalDescriber({
    origin,
    limits: { ...limits, maxOriginalBytes },
    budget,
  });
  return { origin, budget, describer };
}

describe('an original that is described', () => {
  it('is read once, and holds no memory afterwards', async () => {
    const { origin, budget, describer } = describeFrom();
    origin.put('avatars/1/ab12', samples.jpeg);
    const first = await describer.describe('avatars/1/ab12', signal);
    expect(first).toMatchObject({ format: 'jpeg', sizeBytes: samples.jpeg.length });
    expect(await describer.describe('avatars/1/ab12', signal)).toBe(first);
    expect(origin.reads.get('avatars/1/ab12')).toBe(1);
    expect(budget.heldBytes).toBe(0);
  });

  it('is nothing where it is absent, no picture, or too large, and holds no memory either', async () => {
    const { origin, budget, describer } = describeFrom(samples.jpeg.length - 1);
    origin.put('avatars/1/text', Buffer.from('text'));
    origin.put('avatars/1/large', samples.jpeg);
    for (const key of ['avatars/1/absent', 'avatars/1/text', 'avatars/1/large']) {
      expect(await describer.describe(key, signal), key).toBeUndefined();
    }
    expect(budget.heldBytes).toBe(0);
  });

  it('is let go of where there is no memory for it, and described once there is', async () => {
    const { origin, budget, describer } = describeFrom();
    origin.put('avatars/1/ab12', Buffer.concat([samples.jpeg, Buffer.alloc(2_000_000)]));
    const others = budget.reserve(99_999_999);
    // More than are read at a time: each of them has given its place back.
    for (let time = 0; time < 3; time += 1) {
      expect(await describer.describe('avatars/1/ab12', signal)).toBeUndefined();
    }
    others.release();
    expect(await describer.describe('avatars/1/ab12', signal)).toMatchObject({ format: 'jpeg' });
  });
});
