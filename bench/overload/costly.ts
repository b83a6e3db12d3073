import type { LoadResponse } from '../harness/load.ts';
import {
  type Criterion,
  formatCounts,
  formatCriteria,
  formatMs,
  formatQuantiles,
  formatShare,
  formatTable,
  joinParts,
  quantile,
} from '../harness/report.ts';
import { timesOf } from './report.ts';
import { type Beside, type StandOptions, served, TestStand } from './test-stand.ts';

/** All that a run has brought to light. */
type CostlyRun = Awaited<ReturnType<typeof runCostly>>;

const COSTLY_EVERY_MS = 4_000;

/** Until there are two of them before it matters how the others fare. */
const HEAD_START_MS = 2 * COSTLY_EVERY_MS;

/** Healthy ones arrive at this share of the capacity: busy, but far from overload. */
const LOAD_SHARE = 1 / 4;

/** As the p95 of healthy animations may be beside costly originals, of what it is without them. */
const MAX_RATIO = 2;

/**
 * Measures healthy animations that arrive at a steady rate, alone and while an original that takes as long as a render
 * may take comes every four seconds, in turn and on one running service.
 */
export function runCostly(options: StandOptions) {
  const { phaseMs, rounds, workers } = options;
  const costlyMs = phaseMs + HEAD_START_MS;
  const seconds = { light: 0, heavy: (2 * rounds * phaseMs * LOAD_SHARE) / 1_000 };
  const costly = rounds * Math.ceil(costlyMs / COSTLY_EVERY_MS);
  return TestStand.use(workers, seconds, costly, async (stand, capacity) => {
    const perSecond = capacity.perSecond * LOAD_SHARE;
    const measure = async () => {
      const { responses: healthy } = await stand.runSteady('heavy', perSecond, phaseMs);
      return { healthy };
    };
    const flood = () => stand.runSteady('costly', 1_000 / COSTLY_EVERY_MS, costlyMs);
    const phases: (Beside & { readonly healthy: readonly LoadResponse[] })[] = [];
    for (let phase = 0; phase < 2 * rounds; phase += 1) {
      const beside = phase % 2 === 0 ? undefined : flood;
      phases.push(await stand.measurePhase(measure, HEAD_START_MS, beside));
    }
    return { options, capacity, phases };
  });
}

function gather({ phases }: CostlyRun, hasCostly: boolean) {
  const own = phases.filter(({ flood }) => (flood !== undefined) === hasCostly);
  return {
    healthy: own.flatMap(({ healthy }) => healthy),
    costly: own.flatMap(({ flood }) => flood?.responses ?? []),
    othersShares: own.map(({ othersShare }) => othersShare),
  };
}

export function judgeCostly(run: CostlyRun): readonly Criterion[] {
  const { healthy } = gather(run, true);
  const p95 = (hasCostly: boolean): number =>
    quantile(timesOf(served(gather(run, hasCostly).healthy)), 0.95) ?? Number.NaN;
  const ratio = p95(true) / p95(false);
  const isServed = healthy.length > 0 && served(healthy).length === healthy.length;
  const statuses = formatCounts(healthy.map(({ status }) => status));
  return [
    ['animations beside costly originals', 'all 200', statuses, isServed],
    [
      'their p95, of what it is alone',
      `at most ${MAX_RATIO}`,
      ratio.toFixed(2),
      ratio <= MAX_RATIO,
    ],
  ];
}

export function formatCostly(run: CostlyRun): string {
  const { workers, phaseMs } = run.options;
  const { perSecond } = run.capacity;
  const rows = [false, true].map((hasCostly) => {
    const { healthy, costly, othersShares } = gather(run, hasCostly);
    return [
      hasCostly ? `one every ${COSTLY_EVERY_MS / 1000} s` : 'none',
      formatCounts(healthy.map(({ status }) => status)),
      ...formatQuantiles(timesOf(served(healthy)), [0.5, 0.95, 1]),
      formatCounts(costly.map(({ status }) => status)),
      formatMs(quantile(timesOf(served(costly)), 0.5)),
      formatShare(Math.max(...othersShares), 1),
    ];
  });
  const head = 'Costly originals|Animations|p50|p95|most|Costly responses|p50|Others';
  return joinParts(
    '# Costly originals',
    `${workers} workers, of which healthy animations fill a quarter: ${(perSecond * LOAD_SHARE).toFixed(1)} a second of the ` +
      `${perSecond.toFixed(1)} that there are with nothing else to do. Phases of ${phaseMs / 1000} s, in turn.`,
    formatCriteria(judgeCostly(run)),
    formatTable(head.split('|'), rows),
  );
}
