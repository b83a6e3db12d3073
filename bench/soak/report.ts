import { formatBytes, formatCounts, formatMs, formatTable } from '../harness/report.ts';
import type { Criterion, JudgedVisit } from './criteria.ts';
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
  const rows = criteria.map(({ name, measured, demanded, isHeld }) => [
    name,
    measured,
    demanded,
    isHeld === undefined ? 'not judged' : isHeld ? 'holds' : 'broken',
  ]);
  return `${[
    `# Soak of ${(run.loadedMs / MINUTE_MS).toFixed(1)} minutes`,
    `${run.visits.length} requests of ${pressure.clients} clients (think time ${pressure.thinkMs} ms on average), ` +
      `${run.bursts.length} bursts of ${pressure.burstRequests}, waves of faults: ` +
      `${formatCounts(run.waves.map(({ kind }) => kind.name))}; seed ${seed}.`,
    ...run.missing.map((line) => `Left out: ${line}.`),
    ...(run.killedWorkers.byKernel === undefined
      ? ['Left out: no worker is killed by the kernel: no memory cgroup can be made here.']
      : []),
    '## What must hold',
    formatTable(['Criterion', 'Measured', 'Demanded', 'Result'], rows),
    '## Responses',
    formatResponses(judged),
    '## Memory and handles of the main process and its workers',
    formatCourse(run),
    '## Log, warnings and above',
    formatTable(['Kind', 'Lines'], [...log.counts]),
    ...formatExamples('Unexpected responses', judged.flatMap(describeUnexpected)),
    ...formatExamples('Lines in the log without an excuse', log.unexplained),
  ].join('\n\n')}\n`;
}

function formatResponses(judged: readonly JudgedVisit[]): string {
  const purposes = [...new Set(judged.map(({ visit }) => visit.purpose))].sort();
  const rows = purposes.map((purpose) => {
    const own = judged.filter(({ visit }) => visit.purpose === purpose);
    return [
      purpose,
      own.length,
      formatCounts(own.map(({ visit }) => describeResponse(visit))),
      own.filter(({ visit }) => visit.isHit).length,
      formatCounts(own.map(({ verdict }) => verdict.kind)),
    ];
  });
  return formatTable(['Request', 'Count', 'Responses', 'Hits', 'Verdicts'], rows);
}

function describeResponse({ status, code, ending }: Visit): string {
  const response = [status, code].filter(Boolean).join(' ');
  return ending === 'complete' ? response : [response, ending].filter(Boolean).join(', ');
}

function formatCourse({ samples, atRest }: SoakRun): string {
  const step = Math.max(1, Math.ceil(samples.length / MOST_MOMENTS));
  const formatRow = (name: string, { main, workers }: Sample) => [
    name,
    formatBytes(main.residentBytes),
    `${formatBytes(workers.residentBytes)} in ${workers.count}`,
    main.descriptors,
    main.sockets,
    main.threads,
  ];
  const rows = samples
    .filter((_, index) => index % step === 0)
    .map((sample) => formatRow((sample.atMs / MINUTE_MS).toFixed(1), sample));
  if (atRest.before !== undefined) rows.unshift(formatRow('at rest, before', atRest.before));
  if (atRest.after !== undefined) rows.push(formatRow('at rest, after', atRest.after));
  return formatTable(['Minute', 'Main', 'Workers', 'Descriptors', 'Sockets', 'Threads'], rows);
}

function describeUnexpected({ visit, verdict }: JudgedVisit): string[] {
  if (verdict.kind !== 'unexpected') return [];
  const at = (visit.startedMs / MINUTE_MS).toFixed(2);
  const took = formatMs(visit.endedMs - visit.startedMs);
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
