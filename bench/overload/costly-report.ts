import {
  formatCounts,
  formatMs,
  formatQuantiles,
  formatShare,
  formatTable,
  quantile,
} from '../harness/report.ts';
import { COSTLY_EVERY_MS, type CostlyRun } from './costly-run.ts';
import { served } from './overload-run.ts';
import { type Aim, formatAims, timesOf } from './report.ts';

/** As the p95 of healthy animations may be beside costly originals, of what it is without them. */
const MAX_RATIO = 2;

function gather({ phases }: CostlyRun, hasCostly: boolean) {
  const own = phases.filter(({ costly }) => costly.length > 0 === hasCostly);
  return {
    healthy: own.flatMap(({ healthy }) => healthy),
    costly: own.flatMap(({ costly }) => costly),
    othersShares: own.map(({ othersShare }) => othersShare),
  };
}

/** Compares a run with its aims. */
export function judgeCostly(run: CostlyRun): readonly Aim[] {
  const { healthy } = gather(run, true);
  const p95 = (hasCostly: boolean): number =>
    quantile(timesOf(served(gather(run, hasCostly).healthy)), 0.95) ?? Number.NaN;
  const ratio = p95(true) / p95(false);
  return [
    {
      name: 'animations beside costly originals',
      aim: 'all 200',
      measured: formatCounts(healthy.map(({ status }) => status)),
      isReached: healthy.length > 0 && served(healthy).length === healthy.length,
    },
    {
      name: 'their p95, of what it is alone',
      aim: `at most ${MAX_RATIO}`,
      measured: ratio.toFixed(2),
      isReached: ratio <= MAX_RATIO,
    },
  ];
}

/** The whole report of a run, in Markdown. */
export function formatCostly(run: CostlyRun): string {
  const { workers, phaseMs } = run.options;
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
  return `${[
    '# Costly originals',
    `${workers} workers, of which healthy animations fill a quarter: ${run.perSecond.toFixed(1)} a second of the ` +
      `${run.capacityPerSecond.toFixed(1)} that there are with nothing else to do. Phases of ${phaseMs / 1000} s, in turn.`,
    formatAims(judgeCostly(run)),
    formatTable(head.split('|'), rows),
  ].join('\n\n')}\n`;
}
