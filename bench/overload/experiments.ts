import type { LoadResponse } from '../harness/load.ts';
import { type Criterion, formatCounts, formatMs, quantile } from '../harness/report.ts';
import type { Sort } from './originals.ts';

/** Load of one sort: requests at even distances (as a share of the capacity of animations, or a rate), or clients. */
export type Traffic = { readonly sort: Sort } & (
  | { readonly share: number }
  | { readonly perSecond: number }
  | { readonly clientsPerWorker: number }
);

/** Experiment: measures some traffic alone, and beside each of some floods, in turn and on one running service. */
export interface Experiment {
  readonly title: string;
  readonly measured: readonly Traffic[];
  readonly floods: readonly { readonly name: string; readonly traffic: Traffic }[];
  /** Time that a flood is there before the measurement. */
  readonly headStartMs: number;
  /**
   * @param find responses of a sort in all phases beside a flood, or in those without one
   */
  readonly judge: (
    find: (sort: Sort, flood: string) => Gathered,
    worstFlood: string,
  ) => readonly Criterion[];
}

/** Responses of all phases of one kind. */
export interface Gathered {
  readonly responses: readonly LoadResponse[];
  readonly seconds: number;
}

/** Name of the phases without a flood. */
export const ALONE = 'none';

/** Aims of the service under overload. */
const AIMS = { hitP99Ms: 20, lightRatio: 0.5, refusedP99Ms: 50 } as const;

/** Aim for the p95 of animations beside costly originals, as a multiple of their p95 alone. */
const MAX_P95_RATIO = 2;

const COSTLY_EVERY_MS = 4_000;

export const timesOf = (responses: readonly LoadResponse[]): number[] =>
  responses.map(({ totalMs }) => totalMs);

export const withStatus = (responses: readonly LoadResponse[], wanted: number) =>
  responses.filter(({ status }) => status === wanted);

/** Hits and light renders, alone and while animations arrive at many times the capacity. */
export function createFloodExperiment(factors: readonly number[]): Experiment {
  return {
    title: 'Overload',
    measured: [
      { sort: 'hits', perSecond: 50 },
      { sort: 'light', clientsPerWorker: 8 },
    ],
    floods: factors.map((share) => ({
      name: `animations, ${share} × the capacity`,
      traffic: { sort: 'heavy', share },
    })),
    headStartMs: 1_500,
    judge: (find, worstFlood) => {
      const hits = find('hits', worstFlood).responses;
      const hitP99Ms = quantile(timesOf(hits), 0.99);
      // A refusal is faster than a hit, so it must not count as one.
      const others = hits.filter(({ status, isHit }) => status !== 200 || !isHit);
      const kinds = others.map(({ status }) => (status === 200 ? '200 without a hit' : status));
      const rateOf = (flood: string): number => {
        const { responses, seconds } = find('light', flood);
        return withStatus(responses, 200).length / seconds;
      };
      const ratio = rateOf(worstFlood) / rateOf(ALONE);
      const refused = withStatus(find('heavy', worstFlood).responses, 503);
      const refusedP99Ms = quantile(timesOf(refused), 0.99);
      return [
        [
          'p99 of hits',
          `under ${AIMS.hitP99Ms} ms, all of them 200 from memory`,
          formatMs(hitP99Ms) + (others.length === 0 ? '' : `; others: ${formatCounts(kinds)}`),
          hitP99Ms !== undefined && hitP99Ms < AIMS.hitP99Ms && others.length === 0,
        ],
        [
          'light renders, as a share of their rate alone',
          `at least ${AIMS.lightRatio}`,
          ratio.toFixed(2),
          ratio >= AIMS.lightRatio,
        ],
        [
          'p99 of the response 503',
          `under ${AIMS.refusedP99Ms} ms`,
          formatMs(refusedP99Ms),
          refusedP99Ms !== undefined && refusedP99Ms < AIMS.refusedP99Ms,
        ],
      ];
    },
  };
}

/** Animations that fill a quarter of the workers, alone and while originals arrive that take as long as a render may. */
export function createCostlyExperiment(): Experiment {
  return {
    title: 'Costly originals',
    measured: [{ sort: 'heavy', share: 1 / 4 }],
    floods: [
      {
        name: `one costly original every ${COSTLY_EVERY_MS / 1_000} s`,
        traffic: { sort: 'costly', perSecond: 1_000 / COSTLY_EVERY_MS },
      },
    ],
    // With one costly original at a time, the others hardly wait; so there are two first.
    headStartMs: 2 * COSTLY_EVERY_MS,
    judge: (find, worstFlood) => {
      const { responses } = find('heavy', worstFlood);
      const p95 = (flood: string): number =>
        quantile(timesOf(withStatus(find('heavy', flood).responses, 200)), 0.95) ?? Number.NaN;
      const ratio = p95(worstFlood) / p95(ALONE);
      return [
        [
          'animations beside costly originals',
          'all 200',
          formatCounts(responses.map(({ status }) => status)),
          responses.length > 0 && responses.every(({ status }) => status === 200),
        ],
        [
          'their p95, as a multiple of it alone',
          `at most ${MAX_P95_RATIO}`,
          ratio.toFixed(2),
          ratio <= MAX_P95_RATIO,
        ],
      ];
    },
  };
}
