import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import {
  formatBytes,
  formatMs,
  formatShare,
  formatTable,
  joinParts,
  quantile,
} from '../harness/report.ts';
import type { Absence, Entry, Outcome } from './contest.ts';

/** Columns of the report. CPU and memory are of a process tree; idle time and others' are of the machine. */
const columns: Readonly<
  Record<string, readonly [title: string, format: (value: number) => string]>
> = {
  perSecond: ['Responses/s', (value) => value.toFixed(value < 100 ? 1 : 0)],
  cpuMsEach: ['CPU each', formatMs],
  mainCpuMsEach: ['of it the first process', formatMs],
  idleShare: ['Idle', formatShare],
  p50Ms: ['p50', formatMs],
  p99Ms: ['p99', formatMs],
  peakBytes: ['Peak memory', formatBytes],
  bytesEach: ['Bytes', formatBytes],
  butteraugli: ['Butteraugli', (value) => value.toFixed(2)],
  ssimulacra: ['SSIMULACRA', (value) => value.toFixed(4)],
  othersShare: ['Others', formatShare],
};

const valuesOf = ({ turns }: Entry, name: string): number[] =>
  turns.flatMap((turn) => turn[name] ?? []);

/** Ratio of two contestants' responses a second: of their medians, and the least and most of the rounds. */
interface Ratio {
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/** Compares two contestants round by round, since both had a round at about the same time. */
function compare(one: Entry, other: Entry): Ratio | undefined {
  const [mine, theirs] = [valuesOf(one, 'perSecond'), valuesOf(other, 'perSecond')];
  const [median, otherMedian] = [quantile(mine, 0.5), quantile(theirs, 0.5)];
  if (median === undefined || otherMedian === undefined) return undefined;
  const value = median / otherMedian;
  const rounds = mine.map((rate, round) => rate / (theirs[round] ?? Number.NaN));
  return { value, least: Math.min(value, ...rounds), most: Math.max(value, ...rounds) };
}

/** Compares what was measured with the aims and gates. */
export function judgeRequirements(outcomes: readonly Outcome[]) {
  return outcomes.flatMap(({ name, requirements, entries: [first, ...others] }) =>
    requirements.map((requirement) => {
      const other = others.find((entry) => entry.name === requirement.to);
      const ratio = first && other && compare(first, other);
      // Rounded as the report shows it.
      const isReached = ratio && Number(ratio.value.toFixed(2)) >= requirement.atLeast;
      return { contest: name, of: first?.name ?? '–', ...requirement, ratio, isReached };
    }),
  );
}

/** Values of a run besides its outcomes. */
interface Run {
  readonly absences: readonly Absence[];
  /** Names of the contests that were not requested. */
  readonly skipped: readonly string[];
  readonly command: string;
  readonly isQuick: boolean;
}

/** Formats all outcomes as a section in Markdown, for `bench-report/` and `bench/RESULTS.md`. */
export function formatComparison(outcomes: readonly Outcome[], run: Run): string {
  const [cpu] = cpus();
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${formatBytes(totalmem())}`;
  const { absences, skipped, command, isQuick } = run;
  const rows = judgeRequirements(outcomes).map(
    ({ contest, of, to, kind, atLeast, ratio, isReached, reason = '' }) => [
      `${contest}: ${of} / ${to}`,
      `${kind}: at least ${atLeast}`,
      formatRatio(ratio),
      isReached === undefined ? 'not measured' : isReached ? 'reached' : 'missed',
      reason,
    ],
  );
  return joinParts(
    `## ${new Date().toISOString().slice(0, 10)}, commit ${readCommit()}`,
    `\`${command}\` on ${machine}; ${readVersions().join(', ')}. See \`bench/README.md\` for how to read it.`,
    isQuick &&
      'This is a quick run: it shows that all contests work. Its turns are too short to judge anything.',
    !isQuick && formatTable(['Contest', 'Wanted', 'Measured', 'Result', 'Why not more'], rows),
    skipped.length > 0 && `Not measured in this run: ${skipped.join('; ')}.`,
    absences.length > 0 && 'Left out on this machine:',
    absences.length > 0 && formatTable(['Contest', 'Who', 'Why'], absences),
    ...outcomes.map((outcome) => formatOutcome(outcome, !isQuick)),
  );
}

function formatOutcome({ name, note, entries }: Outcome, hasRatios: boolean): string {
  const [first] = entries;
  const shown = Object.entries(columns).filter(([measure]) =>
    entries.some((entry) => valuesOf(entry, measure).length > 0),
  );
  const ratioTitle = hasRatios ? [`${first?.name ?? ''} / it`] : [];
  const head = ['', ...shown.map(([, [title]]) => title), ...ratioTitle];
  const rows = entries.map((entry) => {
    const cells = shown.map(([measure, [, format]]) => {
      const median = quantile(valuesOf(entry, measure), 0.5);
      return median === undefined ? '–' : format(median);
    });
    const ratio = entry === first ? '' : formatRatio(first && compare(first, entry));
    return [entry.name, ...cells, ...(hasRatios ? [ratio] : [])];
  });
  return `### ${name}\n\n${note}\n\n${formatTable(head, rows)}`;
}

function formatRatio(ratio: Ratio | undefined): string {
  if (ratio === undefined) return '–';
  const [value, least, most] = [ratio.value, ratio.least, ratio.most].map((it) => it.toFixed(2));
  return `${value} (${least} to ${most})`;
}

function readCommit(): string {
  const git = (...options: string[]) => execFileSync('git', options, { encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' with changes' : '');
}

/** Reads the versions of what is compared. */
function readVersions(): string[] {
  const packages = { sharp: 'sharp', IPX: 'ipx', Fastify: 'fastify' };
  const versions = Object.entries(packages).map(([name, folder]) => {
    const text = readFileSync(`node_modules/${folder}/package.json`, 'utf8');
    return `${name} ${(JSON.parse(text) as { version: string }).version}`;
  });
  return [`Node ${process.version.slice(1)}`, ...versions];
}
