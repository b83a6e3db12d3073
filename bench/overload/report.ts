import { availableParallelism } from 'node:os';
import type { Answer } from '../harness/load.ts';
import { formatCounts, formatMebibytes, formatMs, formatTable } from '../harness/markdown.ts';
import { quantile } from '../harness/quantile.ts';
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

/** Compares a run with its aims; phases of a kind count together. */
export function judgeOverload(run: OverloadRun): readonly Aim[] {
  const hitP99Ms = quantile(timesOf(hitsOf(run, 'overload')), 0.99);
  const refusedP99Ms = quantile(timesOf(refusedOf(run)), 0.99);
  const ratio = lightPerSecond(run, 'overload') / lightPerSecond(run, 'alone');
  return [
    {
      name: 'p99 of hits under overload',
      aim: `under ${AIMS.hitP99Ms} ms`,
      measured: formatMs(hitP99Ms),
      isReached: hitP99Ms !== undefined && hitP99Ms < AIMS.hitP99Ms,
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

/** The whole report of a run, in Markdown. */
export function formatOverload(run: OverloadRun, animationBytes: readonly number[]): string {
  const { factor, workers, phaseMs } = run.options;
  const kibibytes = animationBytes.map((bytes) => Math.round(bytes / 1024));
  return `${[
    '# Overload',
    `${workers} workers. Animated renders (originals of ${Math.min(...kibibytes)} to ${Math.max(...kibibytes)} KiB): ` +
      `${run.heavyCapacityPerSecond.toFixed(1)} a second with nothing else to do, p50 ${formatMs(quantile(timesOf(run.heavyAlone), 0.5))}. ` +
      `Under overload ${(run.heavyCapacityPerSecond * factor).toFixed(0)} a second arrive, ${factor} times as many. ` +
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
    '## Phases, in their order',
    formatPhases(run),
    '## Animated renders under overload',
    formatHeavy(run),
  ].join('\n\n')}\n`;
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
    String(answers.filter(({ status, isHit }) => status !== 200 || !isHit).length),
    formatMs(quantile(latenessMs, 0.99)),
  ];
  const rows = phases.map(({ kind, hits, light, lengthMs, mainPeakBytes, cpu }) => [
    kind,
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
  const rows = phases.flatMap(({ heavy }) => {
    if (heavy === undefined) return [];
    const { answers, mostInFlight, latenessMs } = heavy;
    const refused = answers.filter(({ status }) => status === 503);
    const startsMs = answers.map(({ startedMs }) => startedMs);
    const spanMs = Math.max(...startsMs) - Math.min(...startsMs);
    return [
      [
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

function hitsOf({ phases }: OverloadRun, kind: Phase['kind']): readonly Answer[] {
  return phases.filter((phase) => phase.kind === kind).flatMap(({ hits }) => hits.answers);
}

function refusedOf({ phases }: OverloadRun): readonly Answer[] {
  return phases.flatMap(({ heavy }) => heavy?.answers ?? []).filter(({ status }) => status === 503);
}

function lightPerSecond({ phases }: OverloadRun, kind: Phase['kind']): number {
  const of = phases.filter((phase) => phase.kind === kind);
  const ms = of.reduce((sum, { lengthMs }) => sum + lengthMs, 0);
  return (of.reduce((sum, { light }) => sum + countServed(light), 0) * 1000) / ms;
}

function served(answers: readonly Answer[]): readonly Answer[] {
  return answers.filter(({ status }) => status === 200);
}

function timesOf(answers: readonly Answer[]): number[] {
  return answers.map(({ totalMs }) => totalMs);
}
