import { availableParallelism } from 'node:os';
import type { LoadResponse } from '../harness/load.ts';
import {
  formatBytes,
  formatCounts,
  formatMs,
  formatQuantiles,
  formatShare,
  formatTable,
  quantile,
  sumOf,
} from '../harness/report.ts';
import { type OverloadRun, served } from './overload-run.ts';

/** What the service must show under overload. */
const AIMS = { hitP99Ms: 20, lightRatio: 0.5, refusedP99Ms: 50 } as const;

/** One aim, and whether it was reached. */
export interface Aim {
  readonly name: string;
  readonly aim: string;
  readonly measured: string;
  readonly isReached: boolean;
}

/** All phases of one load together; load 0 is none. */
function gather({ phases }: Pick<OverloadRun, 'phases'>, factor: number) {
  const own = phases.filter((phase) => phase.factor === factor);
  const heavy = own.flatMap((phase) => phase.heavy?.responses ?? []);
  const seconds = sumOf(own, ({ lengthMs }) => lengthMs) / 1000;
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

/** How long each response took, in milliseconds. */
export function timesOf(responses: readonly LoadResponse[]): number[] {
  return responses.map(({ totalMs }) => totalMs);
}

function isPlainHit({ status, isHit }: LoadResponse): boolean {
  return status === 200 && isHit;
}

/** Compares a run with its aims, at the greatest load; phases of one load count together. */
export function judgeOverload(run: OverloadRun): readonly Aim[] {
  const { hits, refused, lightPerSecond } = gather(run, Math.max(...run.options.factors));
  const hitP99Ms = quantile(timesOf(hits), 0.99);
  // A refusal comes sooner than a hit: it must not count for one.
  const others = hits.filter((response) => !isPlainHit(response));
  const refusedP99Ms = quantile(timesOf(refused), 0.99);
  const ratio = lightPerSecond / gather(run, 0).lightPerSecond;
  return [
    {
      name: 'p99 of hits under overload',
      aim: `under ${AIMS.hitP99Ms} ms, all of them 200 from memory`,
      measured: formatMs(hitP99Ms) + formatOthers(others, hits.length),
      isReached: hitP99Ms !== undefined && hitP99Ms < AIMS.hitP99Ms && others.length === 0,
    },
    {
      name: 'light renders under overload, of what they are alone',
      aim: `at least ${AIMS.lightRatio}`,
      measured: ratio.toFixed(2),
      isReached: ratio >= AIMS.lightRatio,
    },
    {
      name: 'p99 of the response 503',
      aim: `under ${AIMS.refusedP99Ms} ms`,
      measured: formatMs(refusedP99Ms),
      isReached: refusedP99Ms !== undefined && refusedP99Ms < AIMS.refusedP99Ms,
    },
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

/** The whole report of a run, in Markdown. */
export function formatOverload(run: OverloadRun, animationBytes: readonly number[]): string {
  const { factors, workers, phaseMs } = run.options;
  const sizes = [Math.min(...animationBytes), Math.max(...animationBytes)].map(formatBytes);
  return `${[
    '# Overload',
    `${workers} workers. Animated renders (originals of ${sizes.join(' to ')}): ` +
      `${run.heavyCapacityPerSecond.toFixed(1)} a second with nothing else to do, p50 ${formatMs(quantile(timesOf(served(run.heavyAlone)), 0.5))}. ` +
      `Under load, ${factors.map(formatFactor).join(', ')} as many arrive; the aims are for the most. ` +
      `Phases of ${phaseMs / 1000} s. Service and generators share ${availableParallelism()} cores; the one that asks for hits ` +
      `runs at ${run.isHitClientPreferred ? 'a higher' : 'the same'} priority, the others at the same. Others: the most that the machine did beside this in a phase, of its cores.`,
    formatAims(judgeOverload(run)),
    '## By load',
    formatLoads(run),
  ].join('\n\n')}\n`;
}

/** The aims of a run as a table. */
export function formatAims(aims: readonly Aim[]): string {
  const rows = aims.map(({ name, aim, measured, isReached }) => [
    name,
    aim,
    measured,
    isReached ? 'reached' : 'missed',
  ]);
  return formatTable(['Aim', 'Wanted', 'Measured', 'Result'], rows);
}

function formatFactor(factor: number): string {
  return factor === 0 ? 'none' : `${factor} ×`;
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
      formatFactor(factor),
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
