import { availableParallelism } from 'node:os';
import { formatCounts, formatMebibytes, formatMs, formatTable } from '../harness/markdown.ts';
import { quantile } from '../harness/quantile.ts';
import type { Criterion, JudgedVisit } from './criteria.ts';
import { isDisturbed, isInBurst } from './judgement.ts';
import { LATENCY_CLASSES } from './latency-classes.ts';
import type { LogSummary } from './service-log.ts';
import type { SoakRun } from './soak-run.ts';
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
    '## Answers',
    formatAnswers(judged),
    '## Latencies',
    formatLatencies(run),
    '## Memory and handles of the main process and its workers',
    formatMoments(run),
    '## Waves of origin faults',
    formatWaves(run, judged),
    '## Log, warnings and above',
    formatTable(['Kind', 'Lines'], [...log.counts]),
    ...formatExamples('Unexpected answers', judged.flatMap(describeUnexpected)),
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

function formatAnswers(judged: readonly JudgedVisit[]): string {
  const purposes = [...new Set(judged.map(({ visit }) => visit.purpose))].sort();
  const rows = purposes.map((purpose) => {
    const of = judged.filter(({ visit }) => visit.purpose === purpose);
    const count = (kind: string): number =>
      of.filter(({ verdict }) => verdict.kind === kind).length;
    return [
      purpose,
      of.length,
      formatCounts(of.map(({ visit }) => describeAnswer(visit))),
      of.filter(({ visit }) => visit.isHit).length,
      count('origin'),
      count('burst') + count('refused'),
      count('unexpected'),
    ];
  });
  return formatTable(
    ['Request', 'Count', 'Answers', 'Hits', 'Origin failed', 'Refused', 'Unexpected'],
    rows,
  );
}

function describeAnswer({ status, code, ending }: Visit): string {
  const answer = [status, code].filter(Boolean).join(' ');
  return ending === 'complete' ? answer : [answer, ending].filter(Boolean).join(', ');
}

function formatLatencies(run: SoakRun): string {
  const own = run.visits.filter((visit) => !isDisturbed(visit, run));
  const [calm, burst] = [false, true].map((isBurst) =>
    own.filter((visit) => isInBurst(visit, run) === isBurst),
  );
  const rows = LATENCY_CLASSES.map(({ name, read }) => {
    const times = (visits: readonly Visit[] = []): number[] =>
      visits.flatMap((visit) => read(visit) ?? []);
    const [inCalm, inBurst] = [times(calm), times(burst)];
    return [
      name,
      inCalm.length,
      ...[0.5, 0.9, 0.99, 1].map((share) => formatMs(quantile(inCalm, share))),
      inBurst.length,
      ...[0.5, 0.99].map((share) => formatMs(quantile(inBurst, share))),
    ];
  });
  const probes = run.probes.filter(({ isHit }) => isHit).map(({ totalMs }) => totalMs);
  rows.push([
    'a hit asked for each second by a process of its own, bursts included',
    probes.length,
    ...[0.5, 0.9, 0.99, 1].map((share) => formatMs(quantile(probes, share))),
    ...['–', '–', '–'],
  ]);
  const head = ['Answer', 'Count', 'p50', 'p90', 'p99', 'Most', 'In bursts', 'p50', 'p99'];
  return `${formatTable(head, rows)}\n\nRequests whose origin was failing or slow are left out.`;
}

function formatMoments({ samples, visits, atRest }: SoakRun): string {
  const step = Math.max(1, Math.ceil(samples.length / MOST_MOMENTS));
  const chosen = samples.filter((_, index) => index % step === 0);
  const row = (name: string, sample: (typeof samples)[number], rate: string): string[] => [
    name,
    formatMebibytes(sample.main.residentBytes),
    `${formatMebibytes(sample.workers.residentBytes)} in ${sample.workers.count}`,
    String(sample.main.descriptors),
    String(sample.main.sockets),
    String(sample.main.threads),
    rate,
  ];
  const rows = chosen.map((sample, index) => {
    const untilMs = chosen[index + 1]?.atMs ?? samples.at(-1)?.atMs ?? sample.atMs;
    const ended = visits.filter(({ endedMs }) => endedMs >= sample.atMs && endedMs < untilMs);
    const rate = (ended.length * 1000) / Math.max(1, untilMs - sample.atMs);
    return row((sample.atMs / MINUTE_MS).toFixed(1), sample, rate.toFixed(0));
  });
  if (atRest.before !== undefined) rows.unshift(row('at rest, before', atRest.before, '–'));
  if (atRest.after !== undefined) rows.push(row('at rest, after', atRest.after, '–'));
  const head = ['Minute', 'Main', 'Workers', 'Descriptors', 'Sockets', 'Threads', 'Answers/s'];
  return formatTable(head, rows);
}

function formatWaves({ waves }: SoakRun, judged: readonly JudgedVisit[]): string {
  const kinds = [...new Set(waves.map(({ kind }) => kind))].sort();
  return formatTable(
    ['Fault', 'Waves', 'Answers that it explains'],
    kinds.map((kind) => [
      kind,
      waves.filter((wave) => wave.kind === kind).length,
      formatCounts(
        judged
          .filter(({ verdict }) => verdict.kind === 'origin' && verdict.fault === kind)
          .map(({ visit }) => describeAnswer(visit)),
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
