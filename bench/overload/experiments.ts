import type { LoadResponse, LoadResult } from '../harness/load.ts';
import { type Criterion, formatCounts, formatMs, quantile } from '../harness/report.ts';

/** Hits in memory, avatars, animated stickers, or large lossless photographs. */
export type Sort = 'hits' | 'light' | 'heavy' | 'costly';

/** Load of one sort: requests at regular intervals (a rate, or a multiple of the capacity), or clients. */
export type Traffic = { readonly sort: Sort } & (
  | { readonly ofCapacity: number }
  | { readonly perSecond: number }
  | { readonly clientsPerWorker: number }
);

/** Experiment: alternately measures traffic without and with a flood, on one running service. */
export interface Experiment {
  readonly title: string;
  readonly measured: readonly Traffic[];
  readonly flood: Traffic;
  /** Time between the start of the flood and the measurement. */
  readonly headStartMs: number;
  /** Both arguments contain equally many, equally long phases. */
  readonly evaluate: (flooded: readonly Phase[], quiet: readonly Phase[]) => readonly Criterion[];
}

export interface Phase {
  /** Loads by sort; for a closed loop, the responses within the phase. */
  readonly loads: Readonly<Partial<Record<Sort, LoadResult>>>;
  /** Fraction of the machine's cores that other processes used. */
  readonly othersFraction: number;
}

/** Aims of the service under overload. */
const AIMS = { hitP99Ms: 20, lightRatio: 0.6, refusedP99Ms: 50 } as const;

/** Aim for the p95 of animations during costly originals, as a multiple of their p95 without them. */
const MAX_P95_RATIO = 2;

const COSTLY_EVERY_MS = 4_000;

/** Finds the responses of a sort in these phases; with `status`, only responses with this status. */
export function findResponses(
  phases: readonly Phase[],
  sort: Sort,
  status?: number,
): readonly LoadResponse[] {
  const responses = phases.flatMap(({ loads }) => loads[sort]?.responses ?? []);
  return responses.filter((response) => (status ?? response.status) === response.status);
}

/** Returns a quantile of their times; `NaN` without responses. */
export const timeOf = (responses: readonly LoadResponse[], fraction: number): number =>
  quantile(
    responses.map(({ totalMs }) => totalMs),
    fraction,
  ) ?? Number.NaN;

/** Hits and light renders, without and with animations at many times the capacity. */
export const manyAnimations: Experiment = {
  title: 'Overload',
  measured: [
    { sort: 'hits', perSecond: 50 },
    { sort: 'light', clientsPerWorker: 8 },
  ],
  flood: { sort: 'heavy', ofCapacity: 20 },
  headStartMs: 1_500,
  evaluate: (flooded, quiet) => {
    const hits = findResponses(flooded, 'hits');
    const hitP99Ms = timeOf(hits, 0.99);
    // A rejection is faster than a hit, so it must not count as a hit.
    const others = hits.filter(({ status, isHit }) => status !== 200 || !isHit);
    const kinds = others.map(({ status }) => (status === 200 ? '200 without a hit' : status));
    const rendered = (phases: readonly Phase[]) => findResponses(phases, 'light', 200).length;
    const ratio = rendered(flooded) / rendered(quiet);
    const refusedP99Ms = timeOf(findResponses(flooded, 'heavy', 503), 0.99);
    return [
      [
        'p99 of hits',
        `under ${AIMS.hitP99Ms} ms, all of them 200 from memory`,
        formatMs(hitP99Ms) + (others.length === 0 ? '' : `; others: ${formatCounts(kinds)}`),
        hitP99Ms < AIMS.hitP99Ms && others.length === 0,
      ],
      [
        'light renders, as a fraction of their rate without flood',
        `at least ${AIMS.lightRatio}`,
        ratio.toFixed(2),
        ratio >= AIMS.lightRatio,
      ],
      [
        'p99 of the response 503',
        `under ${AIMS.refusedP99Ms} ms`,
        formatMs(refusedP99Ms),
        refusedP99Ms < AIMS.refusedP99Ms,
      ],
    ];
  },
};

/** Animations that fill a quarter of the workers, without and with originals that render until the timeout. */
export const costlyOriginals: Experiment = {
  title: 'Costly originals',
  measured: [{ sort: 'heavy', ofCapacity: 1 / 4 }],
  flood: { sort: 'costly', perSecond: 1_000 / COSTLY_EVERY_MS },
  // With one costly original at a time, other requests hardly wait, so two start first.
  headStartMs: 2 * COSTLY_EVERY_MS,
  evaluate: (flooded, quiet) => {
    const responses = findResponses(flooded, 'heavy');
    const p95Of = (phases: readonly Phase[]) => timeOf(findResponses(phases, 'heavy', 200), 0.95);
    const ratio = p95Of(flooded) / p95Of(quiet);
    return [
      [
        'animations during costly originals',
        'all 200',
        formatCounts(responses.map(({ status }) => status)),
        responses.length > 0 && responses.every(({ status }) => status === 200),
      ],
      [
        'their p95, as a multiple of it without flood',
        `at most ${MAX_P95_RATIO}`,
        ratio.toFixed(2),
        ratio <= MAX_P95_RATIO,
      ],
    ];
  },
};
