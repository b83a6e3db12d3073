import { describe, expect, test } from 'vitest';
import { BUCKET, DEFAULT_SETUP, type Setup } from '../../../bench/scale/setups.ts';
import { type Counts, simulate } from '../../../bench/scale/simulate.ts';
import { createWorkload, type Workload } from '../../../bench/scale/workload.ts';
import { Catalogue } from '../../../bench/trace/catalogue.ts';
import { generateTrace } from '../../../bench/trace/trace.ts';

const MEBIBYTE = 2 ** 20;
const workload = createWorkload(generateTrace({ seed: 5, requests: 30_000, days: 3 }));

/** A setup for this workload as it is: nothing is scaled. */
const plain: Setup = {
  ...DEFAULT_SETUP,
  requestsPerDay: 10_000,
  memoryBytes: 4 * MEBIBYTE,
  originalsBytes: MEBIBYTE,
};

/** Bytes of each rendering that is written by hand. */
const BYTES = 1_000;

/** Requests as `rendering@second`, each rendering of an original of its own. */
function handWritten(texts: readonly string[], deletedS = Number.POSITIVE_INFINITY): Workload {
  const requests = texts.map((text) => text.split('@').map(Number) as [number, number]);
  const count = 1 + Math.max(...requests.map(([rendering]) => rendering));
  const numbers = Array.from({ length: count }, (_, index) => index);
  const shape = { format: 'png', widthPx: 512, heightPx: 512, frames: 1, isClean: true } as const;
  const catalogue = new Catalogue(1);
  for (const original of numbers) {
    const facts = { shape: { ...shape, weight: 1 }, detail: 1, createdS: 0, deletedS };
    catalogue.originals.push({ kind: 'user avatar', ...facts });
    catalogue.rendering(original, '.webp?size=40');
  }
  return {
    trace: {
      options: { seed: 1, requests: requests.length, days: 1 },
      catalogue,
      seconds: Float64Array.from(requests, ([, seconds]) => seconds),
      renderings: Int32Array.from(requests, ([rendering]) => rendering),
      deletions: [],
    },
    originals: Int32Array.from(numbers),
    facts: numbers.map(() => ({ work: 'render', cpuMs: 10, bytes: BYTES })),
    originalBytes: Float64Array.from(numbers, () => 1_000),
  };
}

describe('a simulation by hand', () => {
  const setup = { ...plain, memoryBytes: 2 * (BYTES + 712), originalsBytes: 0 };

  // 0, 1 and 2 one after another leave 1 and 2 in memory.
  test.each<{
    readonly name: string;
    /** Each a rendering, and the second at which it is asked for. */
    readonly requests: string;
    readonly changed?: Partial<Setup>;
    readonly deletedS?: number;
    readonly tiers: Partial<Counts['tiers']>;
    readonly counts: Partial<Counts>;
  }>([
    {
      name: 'a memory with room for two',
      // Of the last five: a hit, 1 goes, a hit, 2 goes, 0 goes.
      requests: '0@0 1@1 0@2 2@3 0@4 1@5 2@6',
      tiers: { memory: 2, origin: 5 },
      counts: { renders: 5, renderCpuMs: 50, originReads: 5, revalidations: 0 },
    },
    {
      name: 'a hit is checked once in the time after which it must be',
      requests: '0@0 0@299 0@300 0@599 0@601',
      tiers: {},
      counts: { renders: 1, revalidations: 2 },
    },
    {
      name: 'the store has what the memory has lost, after a small read',
      requests: '0@0 1@1 2@2 0@400',
      changed: { storeBytes: BUCKET },
      tiers: { origin: 3, store: 1 },
      counts: { originReads: 3, revalidations: 4 },
    },
    {
      name: 'the store needs no read while what the origin said is fresh, but one before each miss',
      requests: '0@0 1@1 2@2 0@3',
      changed: { storeBytes: BUCKET },
      tiers: { origin: 3, store: 1 },
      counts: { originReads: 3, revalidations: 3 },
    },
    {
      name: 'without a store, an original is asked for once, for all',
      requests: '0@0 1@1 2@2 0@3',
      tiers: { origin: 4 },
      counts: { originReads: 4, revalidations: 0 },
    },
    {
      name: 'an original in memory is not read again',
      requests: '0@0 1@1 2@2 0@3',
      changed: { originalsBytes: 3_000 },
      tiers: { origin: 3, heldOriginal: 1 },
      counts: { originReads: 3, renders: 4 },
    },
    {
      name: 'what is deleted is missing',
      requests: '0@0 0@9',
      deletedS: 5,
      tiers: { origin: 1, missing: 1 },
      counts: {},
    },
  ])('$name', ({ requests, changed, deletedS, tiers, counts }) => {
    const written = handWritten(requests.split(' '), deletedS);
    const known = { ...setup, requestsPerDay: written.trace.options.requests, ...changed };
    expect(simulate(written, known, 0).counts).toMatchObject({ ...counts, tiers });
  });
});

describe('conservation', () => {
  const setups = [0, 20 * MEBIBYTE, BUCKET].flatMap((storeBytes) =>
    [0, 8 * MEBIBYTE].map((edgeBytes) => ({ ...plain, storeBytes, edgeBytes, replicas: 3 })),
  );

  test.each(setups)('store of $storeBytes bytes, edge of $edgeBytes bytes', (setup) => {
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
