import { availableParallelism } from 'node:os';
import {
  formatBytes,
  formatCounts,
  formatMs,
  formatQuantiles,
  formatTable,
  quantile,
} from '../harness/report.ts';
import type { Criterion, JudgedVisit } from './criteria.ts';
import { isDisturbed, isInBurst } from './judgement.ts';
import type { LogSummary } from './service-log.ts';
import type { Sample, SoakRun } from './soak-run.ts';
import type { Visit } from './visit.ts';

const MINUTE_MS = 60_000;
const MOST_MOMENTS = 15;
const MOST_EXAMPLES = 40;

/** The whole report of a run, in Markdown. */
export function formatReport(
  run: SoakRun,
  judged: readonly JudgedVisit[],
  log: LogSummary,
  criteria: readonly Criterion[],
): string {
  const { pressure, seed } = run.options;
  const minutes = (run.loadedMs / MINUTE_MS).toFixed(1);
  return `${[
    `# Soak of ${minutes} minutes`,
    `${run.visits.length} requests of ${pressure.clients} clients (think time ${pressure.thinkMs} ms on average), ` +
      `${run.bursts.length} bursts of ${pressure.burstRequests}, ${run.waves.length} waves of origin faults; seed ${seed}.`,
    formatCpu(run),
    '## What must hold',
    formatTable(
      ['Criterion', 'Measured', 'Demanded', 'Result'],
      criteria.map(({ name, measured, demanded, result }) => [name, measured, demanded, result]),
    ),
    '## Responses',
    formatResponses(judged),
    '## Latencies',
    formatLatencies(run),
    '## Course of the run',
    formatCourse(run),
    '## Waves of origin faults',
    formatWaves(run, judged),
    '## Log, warnings and above',
    formatTable(['Kind', 'Lines'], [...log.counts]),
    ...formatExamples('Unexpected responses', judged.flatMap(describeUnexpected)),
    ...formatExamples('Lines in the log without an excuse', log.unexplained),
  ].join('\n\n')}\n`;
}

/** How busy it was: latencies of a machine that has more to do than this run tell little. */
function formatCpu({ samples }: SoakRun): string {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return 'Nothing was sampled.';
  const seconds = (last.atMs - first.atMs) / 1000;
  const cores = (used: number): string => (used / seconds).toFixed(2);
  const loads = samples.map(({ machineLoad }) => machineLoad);
  return (
    `The main process used ${cores(last.cpu.main - first.cpu.main)} cores, its workers ` +
    `${cores(last.cpu.workers - first.cpu.workers)}; the load of the whole machine, which has ` +
    `${availableParallelism()} cores and runs clients and origin as well, was ` +
    `${quantile(loads, 0.5)?.toFixed(1)} (median).`
  );
}

function formatResponses(judged: readonly JudgedVisit[]): string {
  const purposes = [...new Set(judged.map(({ visit }) => visit.purpose))].sort();
  const rows = purposes.map((purpose) => {
    const of = judged.filter(({ visit }) => visit.purpose === purpose);
    const count = (kind: string): number =>
      of.filter(({ verdict }) => verdict.kind === kind).length;
    return [
      purpose,
      of.length,
      formatCounts(of.map(({ visit }) => describeResponse(visit))),
      of.filter(({ visit }) => visit.isHit).length,
      count('origin'),
      count('burst') + count('refused'),
      count('unexpected'),
    ];
  });
  return formatTable(
    ['Request', 'Count', 'Responses', 'Hits', 'Origin failed', 'Refused', 'Unexpected'],
    rows,
  );
}

function describeResponse({ status, code, ending }: Visit): string {
  const response = [status, code].filter(Boolean).join(' ');
  return ending === 'complete' ? response : [response, ending].filter(Boolean).join(', ');
}

/** Sorts of responses whose times can be compared, and the time of a visit that is of this sort. */
const LATENCIES: Readonly<Record<string, (visit: Visit) => number | undefined>> = {
  hit: ({ ending, isHit, totalMs }) => (ending === 'complete' && isHit ? totalMs : undefined),
  'light render': (visit) =>
    isRendered(visit) && (visit.purpose === 'new still' || visit.purpose === 'popular image')
      ? visit.totalMs
      : undefined,
  animation: (visit) =>
    isRendered(visit) && visit.purpose === 'new animation' ? visit.totalMs : undefined,
  // What follows the first byte is as fast as the reader.
  'file, first byte': ({ purpose, status, headMs }) =>
    (purpose === 'file' && status === 200) || (purpose === 'range' && status === 206)
      ? headMs
      : undefined,
};

function isRendered({ ending, status, isHit }: Visit): boolean {
  return ending === 'complete' && status === 200 && !isHit;
}

function formatLatencies(run: SoakRun): string {
  const own = run.visits.filter((visit) => !isDisturbed(visit, run));
  const rows = Object.entries(LATENCIES).map(([name, read]) => {
    const timesOf = (isBurst: boolean): number[] =>
      own.flatMap((visit) => (isInBurst(visit, run) === isBurst ? (read(visit) ?? []) : []));
    const [calm, burst] = [timesOf(false), timesOf(true)];
    return [
      name,
      calm.length,
      ...formatQuantiles(calm, [0.5, 0.9, 0.99, 1]),
      burst.length,
      ...formatQuantiles(burst, [0.5, 0.99]),
    ];
  });
  const head = ['Response', 'Count', 'p50', 'p90', 'p99', 'Most', 'In bursts', 'p50', 'p99'];
  return `${formatTable(head, rows)}\n\nRequests whose origin was failing or slow are left out.`;
}

/** Memory and handles of the main process and its workers, and what clients saw meanwhile. */
function formatCourse({ samples, visits, atRest }: SoakRun): string {
  const step = Math.max(1, Math.ceil(samples.length / MOST_MOMENTS));
  const chosen = samples.filter((_, index) => index % step === 0);
  const row = (name: string, { main, workers }: Sample, ended?: readonly Visit[], ms = 1) => [
    name,
    formatBytes(main.residentBytes),
    `${formatBytes(workers.residentBytes)} in ${workers.count}`,
    main.descriptors,
    main.sockets,
    main.threads,
    ended === undefined ? '–' : ((ended.length * 1000) / Math.max(1, ms)).toFixed(0),
    ended?.filter(({ status = 0 }) => status >= 500).length ?? '–',
    ...['hit', 'light render'].map((sort) =>
      formatMs(
        quantile(
          (ended ?? []).flatMap((visit) => LATENCIES[sort]?.(visit) ?? []),
          0.99,
        ),
      ),
    ),
  ];
  const rows = chosen.map((sample, index) => {
    const untilMs = chosen[index + 1]?.atMs ?? samples.at(-1)?.atMs ?? sample.atMs;
    const ended = visits.filter(({ endedMs }) => endedMs >= sample.atMs && endedMs < untilMs);
    return row((sample.atMs / MINUTE_MS).toFixed(1), sample, ended, untilMs - sample.atMs);
  });
  if (atRest.before !== undefined) rows.unshift(row('at rest, before', atRest.before));
  if (atRest.after !== undefined) rows.push(row('at rest, after', atRest.after));
  const head =
    'Minute|Main|Workers|Descriptors|Sockets|Threads|Responses/s|5xx|Hits p99|Light renders p99';
  return formatTable(head.split('|'), rows);
}

function formatWaves({ waves }: SoakRun, judged: readonly JudgedVisit[]): string {
  const kinds = [...new Set(waves.map(({ kind }) => kind))].sort();
  return formatTable(
    ['Fault', 'Waves', 'Responses that it explains'],
    kinds.map((kind) => [
      kind,
      waves.filter((wave) => wave.kind === kind).length,
      formatCounts(
        judged
          .filter(({ verdict }) => verdict.kind === 'origin' && verdict.fault === kind)
          .map(({ visit }) => describeResponse(visit)),
      ),
    ]),
  );
}

function describeUnexpected({ visit, verdict }: JudgedVisit): string[] {
  if (verdict.kind !== 'unexpected') return [];
  const at = (visit.startedMs / MINUTE_MS).toFixed(2);
  const took = formatMs(visit.totalMs);
  return [
    `minute ${at}, ${visit.purpose}: ${visit.method} ${visit.path}: ${verdict.reason}, after ${took}`,
  ];
}

function formatExamples(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length > MOST_EXAMPLES ? [`… and ${lines.length - MOST_EXAMPLES} more`] : [];
  const shown = [...lines.slice(0, MOST_EXAMPLES), ...more];
  return [`## ${title}`, `\`\`\`\n${shown.join('\n')}\n\`\`\``];
}
