import {
  type Criterion,
  formatBytes,
  formatCounts,
  formatCriteria,
  formatMs,
  formatTable,
  joinParts,
} from '../harness/report.ts';
import type { JudgedVisit } from './criteria.ts';
import type { LogSummary } from './service-log.ts';
import type { Sample, SoakRun } from './soak-run.ts';

const MINUTE_MS = 60_000;
const MOST_MOMENTS = 15;
const MOST_EXAMPLES = 40;

export function formatReport(
  run: SoakRun,
  judged: readonly JudgedVisit[],
  log: LogSummary,
  criteria: readonly Criterion[],
): string {
  const { pressure, seed } = run.options;
  return joinParts(
    `# Soak of ${(run.loadedMs / MINUTE_MS).toFixed(1)} minutes`,
    `${run.visits.length} requests of ${pressure.clients} clients (think time ${pressure.thinkMs} ms on average), ` +
      `${run.bursts.length} bursts of ${pressure.burstRequests}, waves of faults: ` +
      `${formatCounts(run.waves.map(({ kind }) => kind.name))}; seed ${seed}.`,
    ...run.missing.map((line) => `Left out: ${line}.`),
    run.killedWorkers.byKernel === undefined &&
      'Left out: no worker is killed by the kernel: no memory cgroup can be made here.',
    '## What must hold',
    formatCriteria(criteria),
    '## Responses',
    formatResponses(judged),
    '## Memory and handles of the main process and its workers',
    formatCourse(run),
    '## Log, warnings and above',
    formatTable(['Kind', 'Lines'], [...log.counts]),
    ...formatExamples(
      'Unexpected responses',
      judged.flatMap((visit) => describeUnexpected(visit, run.beganMs)),
    ),
    ...formatExamples('Lines in the log without an excuse', log.unexplained),
  );
}

function formatResponses(judged: readonly JudgedVisit[]): string {
  const purposes = [...new Set(judged.map(({ purpose }) => purpose))].sort();
  const rows = purposes.map((wanted) => {
    const own = judged.filter(({ purpose }) => purpose === wanted);
    return [
      wanted,
      own.length,
      formatCounts(own.map(describeResponse)),
      own.filter(({ isHit }) => isHit).length,
      formatCounts(own.map(({ verdict }) => verdict.kind)),
    ];
  });
  return formatTable(['Request', 'Count', 'Responses', 'Hits', 'Verdicts'], rows);
}

function describeResponse({ status, code, ending }: JudgedVisit): string {
  const response = [status, code].filter(Boolean).join(' ');
  return ending === 'complete' ? response : [response, ending].filter(Boolean).join(', ');
}

function formatCourse({ samples, atRest, beganMs }: SoakRun): string {
  const step = Math.max(1, Math.ceil(samples.length / MOST_MOMENTS));
  const minuteOf = ({ atMs }: Sample): string => ((atMs - beganMs) / MINUTE_MS).toFixed(1);
  const moments: (readonly [name: string, sample: Sample | undefined])[] = [
    ['at rest, before', atRest.before],
    ...samples
      .filter((_, index) => index % step === 0)
      .map((sample) => [minuteOf(sample), sample] as const),
    ['at rest, after', atRest.after],
  ];
  const rows = moments.map(([name, sample]) => [
    name,
    formatBytes(sample?.main.residentBytes),
    `${formatBytes(sample?.workers.residentBytes)} in ${sample?.workers.count ?? '–'}`,
    sample?.main.descriptors ?? '–',
    sample?.main.threads ?? '–',
  ]);
  return formatTable(['Minute', 'Main', 'Workers', 'Descriptors', 'Threads'], rows);
}

function describeUnexpected(visit: JudgedVisit, beganMs: number): string[] {
  const { verdict, startedMs, endedMs, purpose, method, path } = visit;
  if (verdict.kind !== 'unexpected') return [];
  const at = ((startedMs - beganMs) / MINUTE_MS).toFixed(2);
  const took = formatMs(endedMs - startedMs);
  return [`minute ${at}, ${purpose}: ${method} ${path}: ${verdict.reason}, after ${took}`];
}

function formatExamples(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length > MOST_EXAMPLES ? [`… and ${lines.length - MOST_EXAMPLES} more`] : [];
  const shown = [...lines.slice(0, MOST_EXAMPLES), ...more];
  return [`## ${title}`, `\`\`\`\n${shown.join('\n')}\n\`\`\``];
}
