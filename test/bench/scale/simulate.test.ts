import { describe, expect, test } from 'vitest';
import { DEFAULT_SETUP, type Setup } from '../../../bench/scale/setups.ts';
import { simulate } from '../../../bench/scale/simulate.ts';
import { createWorkload, type Workload } from '../../../bench/scale/workload.ts';
import { generateTrace } from '../../../bench/trace/trace.ts';
import { variantOf } from '../../../bench/trace/usages.ts';

const MEBIBYTE = 2 ** 20;
const workload = createWorkload(generateTrace({ seed: 5, requests: 30_000, days: 3 }));

/** A setup for this workload as it is: nothing is scaled. */
const plain: Setup = {
  ...DEFAULT_SETUP,
  requestsPerDay: 10_000,
  memoryBytes: 4 * MEBIBYTE,
  originalsBytes: MEBIBYTE,
};

/** Requests for renderings of one size, each of an original of its own, at given seconds. */
function handWritten(
  requests: readonly (readonly [rendering: number, seconds: number])[],
  bytes: number,
  deletedS = Number.POSITIVE_INFINITY,
): Workload {
  const variant = variantOf('author', 0);
  const count = 1 + Math.max(...requests.map(([rendering]) => rendering));
  const numbers = Array.from({ length: count }, (_, index) => index);
  const shape = { format: 'png', widthPx: 512, heightPx: 512, frames: 1, isClean: true } as const;
  const originals = numbers.map(() => ({
    kind: 'user avatar' as const,
    shape: { ...shape, weight: 1 },
    detail: 1,
    createdS: 0,
    deletedS,
  }));
  return {
    trace: {
      options: { seed: 1, requests: requests.length, days: 1 },
      catalogue: { originals, renderings: numbers.map((original) => ({ original, variant })) },
      seconds: Float64Array.from(requests, ([, seconds]) => seconds),
      renderings: Int32Array.from(requests, ([rendering]) => rendering),
      deletions: [],
    },
    originals: Int32Array.from(numbers),
    facts: numbers.map(() => ({ work: 'render', cpuMs: 10, bytes })),
    originalBytes: Float64Array.from(numbers, () => 1_000),
  };
}

describe('a simulation by hand', () => {
  const setup = { ...plain, memoryBytes: 2 * (1_000 + 712), originalsBytes: 0 };
  const run = (of: Workload, changed: Partial<Setup> = {}) =>
    simulate(of, { ...setup, requestsPerDay: of.trace.options.requests, ...changed }, 0).counts;

  test('a memory with room for two', () => {
    const counts = run(
      handWritten(
        [
          [0, 0],
          [1, 1],
          [0, 2], // a hit; 1 is the oldest now
          [2, 3], // 1 goes
          [0, 4], // a hit
          [1, 5], // 2 goes
          [2, 6], // 0 goes
        ],
        1_000,
      ),
    );
    expect(counts.tiers).toMatchObject({ memory: 2, origin: 5 });
    expect(counts).toMatchObject({ renders: 5, renderCpuMs: 50, originReads: 5, revalidations: 0 });
  });

  test('a hit is checked once in the time after which it must be', () => {
    const counts = run(
      handWritten(
        [
          [0, 0],
          [0, 299],
          [0, 300],
          [0, 599],
          [0, 601],
        ],
        1_000,
      ),
    );
    expect(counts).toMatchObject({ renders: 1, revalidations: 2 });
  });

  test('the store has what the memory has lost, after a small read', () => {
    const requests = [
      [0, 0],
      [1, 1],
      [2, 2],
      [0, 400],
    ] as const;
    const counts = run(handWritten(requests, 1_000), { store: { kind: 's3' } });
    expect(counts.tiers).toMatchObject({ origin: 3, store: 1 });
    expect(counts).toMatchObject({ originReads: 3, revalidations: 4 });
  });

  test('before what the store does not have, an original is asked for one byte, then for all', () => {
    const requests = [
      [0, 0],
      [1, 1],
      [2, 2],
      [0, 3], // from the store, while what the origin said of it is fresh
    ] as const;
    const workload = handWritten(requests, 1_000);
    const stored = run(workload, { store: { kind: 's3' } });
    expect(stored).toMatchObject({ originReads: 3, revalidations: 3 });
    expect(run(workload)).toMatchObject({ originReads: 4, revalidations: 0 });
  });

  test('an original in memory is not read again', () => {
    const requests = [
      [0, 0],
      [1, 1],
      [2, 2],
      [0, 3],
    ] as const;
    const counts = run(handWritten(requests, 1_000), { originalsBytes: 3_000 });
    expect(counts.tiers).toMatchObject({ origin: 3, heldOriginal: 1 });
    expect(counts).toMatchObject({ originReads: 3, renders: 4 });
  });

  test('what is deleted is missing', () => {
    const counts = run(
      handWritten(
        [
          [0, 0],
          [0, 9],
        ],
        1_000,
        5,
      ),
    );
    expect(counts.tiers).toMatchObject({ origin: 1, missing: 1 });
  });
});

describe('conservation', () => {
  const stores: Setup['store'][] = [
    { kind: 'none' },
    { kind: 'filesystem', maxBytes: 20 * MEBIBYTE },
    { kind: 's3' },
  ];
  const setups = stores.flatMap((store) =>
    [0, 8 * MEBIBYTE].map((edgeBytes) => ({ ...plain, store, edgeBytes, replicas: 3 })),
  );

  test.each(setups)('store $store.kind, edge of $edgeBytes bytes', (setup) => {
    const { counts } = simulate(workload, setup, 0);
    const served = Object.values(counts.tiers).reduce((sum, count) => sum + count, 0);
    expect(served).toBe(workload.trace.renderings.length);
    expect(counts.requests).toBe(served);
    expect(counts.originReads).toBe(counts.tiers.origin + counts.tiers.streamed);
    expect(counts.renders).toBeLessThanOrEqual(counts.tiers.origin + counts.tiers.heldOriginal);
  });
});

describe('what more of something does', () => {
  const memoryHits = (changed: Partial<Setup>): number =>
    simulate(workload, { ...plain, ...changed }, 1).counts.tiers.memory;
  test('more memory, more hits', () => {
    const hits = [1, 4, 16, 64].map((mebibytes) =>
      memoryHits({ memoryBytes: mebibytes * MEBIBYTE }),
    );
    expect(hits).toEqual(hits.toSorted((one, other) => one - other));
  });

  test('a model of a deployment ten times as large hits as its own size does', () => {
    const tenfold = simulate(
      workload,
      {
        ...plain,
        requestsPerDay: 10 * plain.requestsPerDay,
        memoryBytes: 10 * plain.memoryBytes,
        originalsBytes: 10 * plain.originalsBytes,
      },
      1,
    );
    expect(tenfold.counts).toEqual(simulate(workload, plain, 1).counts);
    expect(tenfold.scale).toBe(10);
  });
});
