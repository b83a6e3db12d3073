import { availableParallelism } from 'node:os';
import type { Answer } from '../harness/load.ts';
import {
  formatCounts,
  formatMebibytes,
  formatMs,
  formatShare,
  formatTable,
} from '../harness/markdown.ts';
import { quantile } from '../harness/quantile.ts';
import {
  greatest,
  heavyOf,
  hitsOf,
  lightPerSecond,
  refusedOf,
  served,
  timesOf,
} from './load-answers.ts';
import { countServed, type OverloadRun, type Phase } from './measurements.ts';

/** What the service must show under overload. */
const AIMS = { hitP99Ms: 20, lightRatio: 0.5, refusedP99Ms: 50 } as const;

/** One aim, and whether it was reached. */
export interface Aim {
  readonly name: string;
  readonly aim: string;
  readonly measured: string;
  readonly isReached: boolean;
}

/** Compares a run with its aims, at the greatest load; phases of one load count together. */
export function judgeOverload(run: OverloadRun): readonly Aim[] {
  const factor = greatest(run);
  const hits = hitsOf(run, factor);
  const hitP99Ms = quantile(timesOf(hits), 0.99);
  // A refusal is answered sooner than a hit: it must not count for one.
  const others = hits.filter((answer) => !isPlainHit(answer));
  const refusedP99Ms = quantile(timesOf(refusedOf(run, factor)), 0.99);
  const ratio = lightPerSecond(run, factor) / lightPerSecond(run, 0);
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
      name: 'p99 of the answer 503',
      aim: `under ${AIMS.refusedP99Ms} ms`,
      measured: formatMs(refusedP99Ms),
      isReached: refusedP99Ms !== undefined && refusedP99Ms < AIMS.refusedP99Ms,
    },
  ];
}

function isPlainHit({ status, isHit }: Answer): boolean {
  return status === 200 && isHit;
}

/** What came instead of hits: nothing to say where nothing did. */
function formatOthers(others: readonly Answer[], asked: number): string {
  if (others.length === 0) return '';
  const kinds = others.map(({ status }) => {
    if (status === 0) return 'not answered';
    return status === 200 ? '200, and no hit' : String(status);
  });
  const counts = [...new Set(kinds)].map((kind) => {
    const count = kinds.filter((other) => other === kind).length;
    return `${count} of ${asked} ${count === 1 ? 'was' : 'were'} ${kind}`;
  });
  return `, but ${counts.join(', ')}`;
}

/** The whole report of a run, in Markdown. */
export function formatOverload(run: OverloadRun, animationBytes: readonly number[]): string {
  const { factors, workers, phaseMs } = run.options;
  const kibibytes = animationBytes.map((bytes) => Math.round(bytes / 1024));
  return `${[
    '# Overload',
    `${workers} workers. Animated renders (originals of ${Math.min(...kibibytes)} to ${Math.max(...kibibytes)} KiB): ` +
      `${run.heavyCapacityPerSecond.toFixed(1)} a second with nothing else to do, p50 ${formatMs(quantile(timesOf(run.heavyAlone), 0.5))}. ` +
      `Under load, ${factors.map((factor) => formatTimes(factor)).join(', ')} as many arrive; the aims are for the most. ` +
      `Phases of ${phaseMs / 1000} s. Service and generators share ${availableParallelism()} cores; the one that asks for hits ` +
      `runs at ${run.isHitClientPreferred ? 'a higher' : 'the same'} priority, the others at the same.`,
    formatTable(
      ['Aim', 'Wanted', 'Measured', 'Result'],
      judgeOverload(run).map(({ name, aim, measured, isReached }) => [
        name,
        aim,
        measured,
        isReached ? 'reached' : 'missed',
      ]),
    ),
    '## By load',
    formatLoads(run),
    '## Phases, in their order',
    formatPhases(run),
    '## Animated renders under overload',
    formatHeavy(run),
  ].join('\n\n')}\n`;
}

/** What becomes of the others the more animations come. */
function formatLoads(run: OverloadRun): string {
  const alone = lightPerSecond(run, 0);
  const rows = [0, ...run.options.factors].map((factor) => {
    const hits = timesOf(hitsOf(run, factor));
    const light = lightPerSecond(run, factor);
    const heavy = heavyOf(run, factor);
    const refused = timesOf(refusedOf(run, factor));
    return [
      factor === 0 ? 'none' : formatTimes(factor),
      ...[0.5, 0.99].map((share) => formatMs(quantile(hits, share))),
      light.toFixed(0),
      (light / alone).toFixed(2),
      formatShare(countServed(heavy), heavy.length),
      ...[0.5, 0.99].map((share) => formatMs(quantile(timesOf(served(heavy)), share))),
      formatShare(refused.length, heavy.length),
      formatMs(quantile(refused, 0.99)),
    ];
  });
  const head = [
    'Animated renders, of the capacity',
    'Hits p50',
    'p99',
    'Light/s',
    'of alone',
    'Animated served',
    'p50',
    'p99',
    'Refused',
    '503 p99',
  ];
  return formatTable(head, rows);
}

function formatTimes(factor: number): string {
  return `${factor} ×`;
}

function formatPhases({ quietHits, phases }: OverloadRun): string {
  const head = [
    'Phase',
    'Hits p50',
    'p99',
    'Most',
    'No hits',
    'Sent late, p99',
    'Light/s',
    'p50',
    'p99',
    'Light answers',
    'Main, most',
    'CPU s: main',
    'workers',
    'generators',
    'others',
  ];
  const hitCells = ({ answers, latenessMs }: Phase['hits']): string[] => [
    ...[0.5, 0.99, 1].map((share) => formatMs(quantile(timesOf(answers), share))),
    // Their times count as well: what was asked for was a hit.
    String(answers.filter((answer) => !isPlainHit(answer)).length),
    formatMs(quantile(latenessMs, 0.99)),
  ];
  const rows = phases.map(({ factor, hits, light, lengthMs, mainPeakBytes, cpu }) => [
    factor === 0 ? 'alone' : formatTimes(factor),
    ...hitCells(hits),
    ((countServed(light) * 1000) / lengthMs).toFixed(0),
    ...[0.5, 0.99].map((share) => formatMs(quantile(timesOf(served(light)), share))),
    formatCounts(light.map(({ status }) => status)),
    formatMebibytes(mainPeakBytes),
    ...[cpu.main, cpu.workers, cpu.generators, cpu.others].map((seconds) => seconds.toFixed(1)),
  ]);
  const quiet = ['hits only', ...hitCells(quietHits)];
  return formatTable(head, [
    [...quiet, ...Array<string>(head.length - quiet.length).fill('–')],
    ...rows,
  ]);
}

function formatHeavy({ phases }: OverloadRun): string {
  const rows = phases.flatMap(({ heavy, factor }) => {
    if (heavy === undefined) return [];
    const { answers, mostInFlight, latenessMs } = heavy;
    const refused = answers.filter(({ status }) => status === 503);
    const startsMs = answers.map(({ startedMs }) => startedMs);
    const spanMs = Math.max(...startsMs) - Math.min(...startsMs);
    return [
      [
        formatTimes(factor),
        formatCounts(answers.map(({ status }) => status)),
        ((answers.length * 1000) / spanMs).toFixed(1),
        ((countServed(answers) * 1000) / spanMs).toFixed(1),
        ...[0.5, 0.99].map((share) => formatMs(quantile(timesOf(served(answers)), share))),
        ...[0.5, 0.99, 1].map((share) => formatMs(quantile(timesOf(refused), share))),
        formatRetryAfter(refused),
        mostInFlight,
        formatMs(quantile(latenessMs, 0.99)),
      ],
    ];
  });
  const head = [
    'Load',
    'Answers',
    'Arrived/s',
    'Served/s',
    'p50',
    'p99',
    '503 p50',
    'p99',
    'Most',
    'Retry-After',
    'In flight, most',
    'Sent late, p99',
  ];
  return formatTable(head, rows);
}

function formatRetryAfter(refused: readonly Answer[]): string {
  const seconds = refused.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  const without = refused.length - seconds.length;
  const [least, median, most] = [0, 0.5, 1].map((share) => quantile(seconds, share) ?? '–');
  return `${least} to ${most} s, median ${median} s${without === 0 ? '' : `; none × ${without}`}`;
}
