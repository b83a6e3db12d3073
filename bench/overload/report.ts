import { availableParallelism } from 'node:os';
import type { LoadResponse } from '../harness/load.ts';
import {
  type Criterion,
  formatBytes,
  formatCounts,
  formatCriteria,
  formatMs,
  formatQuantiles,
  formatShare,
  formatTable,
  joinParts,
  quantile,
  sumOf,
} from '../harness/report.ts';
import type { OverloadRun } from './overload-run.ts';
import { served } from './test-stand.ts';

/** What the service must show under overload. */
const AIMS = { hitP99Ms: 20, lightRatio: 0.5, refusedP99Ms: 50 } as const;

/** All phases of one load together; load 0 is none. */
function gather({ phases, options }: OverloadRun, factor: number) {
  const own = phases.filter((phase) => phase.factor === factor);
  const heavy = own.flatMap(({ flood }) => flood?.responses ?? []);
  const seconds = (own.length * options.phaseMs) / 1000;
  return {
    hits: own.flatMap(({ hits }) => hits.responses),
    hitLatenessMs: own.flatMap(({ hits }) => hits.latenessMs),
    othersShares: own.map(({ othersShare }) => othersShare),
    /** Light renders that were served, a second. */
    lightPerSecond: sumOf(own, ({ light }) => served(light).length) / seconds,
    heavy,
    refused: heavy.filter(({ status }) => status === 503),
  };
}

export function timesOf(responses: readonly LoadResponse[]): number[] {
  return responses.map(({ totalMs }) => totalMs);
}

/** Compares a run with its aims, at the greatest load; phases of one load count together. */
export function judgeOverload(run: OverloadRun): readonly Criterion[] {
  const { hits, refused, lightPerSecond } = gather(run, Math.max(...run.options.factors));
  const hitP99Ms = quantile(timesOf(hits), 0.99);
  // A refusal comes sooner than a hit: it must not count for one.
  const others = hits.filter(({ status, isHit }) => status !== 200 || !isHit);
  const refusedP99Ms = quantile(timesOf(refused), 0.99);
  const ratio = lightPerSecond / gather(run, 0).lightPerSecond;
  return [
    [
      'p99 of hits under overload',
      `under ${AIMS.hitP99Ms} ms, all of them 200 from memory`,
      formatMs(hitP99Ms) + formatOthers(others, hits.length),
      hitP99Ms !== undefined && hitP99Ms < AIMS.hitP99Ms && others.length === 0,
    ],
    [
      'light renders under overload, of what they are alone',
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
}

/** What came instead of hits; empty where nothing did. */
function formatOthers(others: readonly LoadResponse[], asked: number): string {
  const kinds = others.map(({ status }) => {
    if (status === 0) return 'no response';
    return status === 200 ? '200, and no hit' : String(status);
  });
  return others.length === 0 ? '' : `, but of ${asked}: ${formatCounts(kinds)}`;
}

export function formatOverload(run: OverloadRun): string {
  const { capacity, animationBytes } = run;
  const { factors, workers, phaseMs } = run.options;
  const sizes = [Math.min(...animationBytes), Math.max(...animationBytes)].map(formatBytes);
  return joinParts(
    '# Overload',
    `${workers} workers. Animated renders (originals of ${sizes.join(' to ')}): ` +
      `${capacity.perSecond.toFixed(1)} a second with nothing else to do, p50 ${formatMs(quantile(timesOf(served(capacity.responses)), 0.5))}. ` +
      `Under load, ${factors.join(', ')} times as many arrive; the aims are for the most. ` +
      `Phases of ${phaseMs / 1000} s. Service and generators share ${availableParallelism()} cores; the one that asks for hits ` +
      `runs at ${run.isHitClientPreferred ? 'a higher' : 'the same'} priority, the others at the same. Others: the most that the machine did beside this in a phase, of its cores.`,
    formatCriteria(judgeOverload(run)),
    '## By load',
    formatLoads(run),
  );
}

/** What becomes of the others the more animations come. */
function formatLoads(run: OverloadRun): string {
  const alone = gather(run, 0).lightPerSecond;
  const head =
    'Animated renders, of the capacity|Hits p50|p99|sent late, p99|Light/s|of alone|Animated responses|Served|p50|p99|Refused|503 p50|p99|most|Retry-After|Others';
  const rows = [0, ...run.options.factors].map((factor) => {
    const { hits, hitLatenessMs, lightPerSecond, heavy, refused, othersShares } = gather(
      run,
      factor,
    );
    return [
      factor === 0 ? 'none' : `${factor} ×`,
      ...formatQuantiles(timesOf(hits), [0.5, 0.99]),
      formatMs(quantile(hitLatenessMs, 0.99)),
      lightPerSecond.toFixed(0),
      (lightPerSecond / alone).toFixed(2),
      formatCounts(heavy.map(({ status }) => status)),
      formatShare(served(heavy).length, heavy.length),
      ...formatQuantiles(timesOf(served(heavy)), [0.5, 0.99]),
      formatShare(refused.length, heavy.length),
      ...formatQuantiles(timesOf(refused), [0.5, 0.99, 1]),
      formatRetryAfter(refused),
      formatShare(Math.max(...othersShares), 1),
    ];
  });
  return formatTable(head.split('|'), rows);
}

function formatRetryAfter(refused: readonly LoadResponse[]): string {
  const seconds = refused.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  const without = refused.length - seconds.length;
  const [least, median, most] = [0, 0.5, 1].map((share) => quantile(seconds, share) ?? '–');
  return `${least} to ${most} s, median ${median} s${without === 0 ? '' : `; none × ${without}`}`;
}
