import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import {
  type Criterion,
  formatBytes,
  formatCriteria,
  formatMs,
  formatPercent,
  formatTable,
  joinParts,
  quantile,
} from '../harness/report.ts';
import type { Entry, Outcome } from './contest.ts';

/** Columns of the report. CPU and memory refer to a process tree; `Idle` and `Others` refer to the machine. */
const columns: Readonly<
  Record<string, readonly [title: string, format: (value: number) => string]>
> = {
  perSecond: ['Responses/s', (value) => value.toFixed(value < 100 ? 1 : 0)],
  cpuMsEach: ['CPU each', formatMs],
  mainCpuMsEach: ['of it the first process', formatMs],
  idleFraction: ['Idle', formatPercent],
  p50Ms: ['p50', formatMs],
  p99Ms: ['p99', formatMs],
  peakBytes: ['Peak memory', formatBytes],
  bytesEach: ['Bytes', formatBytes],
  butteraugli: ['Butteraugli', (value) => value.toFixed(2)],
  ssimulacra: ['SSIMULACRA', (value) => value.toFixed(4)],
  othersFraction: ['Others', formatPercent],
};

type Ratio = readonly [value: number, min: number, max: number];

const valuesOf = ({ turns }: Entry, name: string): number[] =>
  turns.flatMap((turn) => turn[name] ?? []);

/**
 * Returns the ratio of the medians of two contestants' responses a second, and the minimum and maximum ratio of a
 * round: the turns of one round are close in time.
 */
function compare(one: Entry | undefined, other: Entry | undefined): Ratio | undefined {
  if (one === undefined || other === undefined) return undefined;
  const [mine, theirs] = [valuesOf(one, 'perSecond'), valuesOf(other, 'perSecond')];
  const ratio = (quantile(mine, 0.5) ?? Number.NaN) / (quantile(theirs, 0.5) ?? Number.NaN);
  const rounds = mine.map((rate, round) => rate / (theirs[round] ?? Number.NaN));
  return [ratio, Math.min(ratio, ...rounds), Math.max(ratio, ...rounds)];
}

/** Compares the measurements with the gates. */
export function checkGates(outcomes: readonly Outcome[]): readonly Criterion[] {
  return outcomes.flatMap(({ name, gates, entries: [first, ...others] }) =>
    Object.entries(gates).map(([to, atLeast]): Criterion => {
      const ratio = compare(
        first,
        others.find((entry) => entry.name === to),
      );
      // Rounded as the report shows it.
      const isReached = ratio && Number(ratio[0].toFixed(2)) >= atLeast;
      const title = `${name}: ${first?.name ?? '–'} / ${to}`;
      return [title, `at least ${atLeast}`, formatRatio(ratio), isReached];
    }),
  );
}

/** Formats all outcomes as a section in Markdown, for `bench-report/` and `bench/RESULTS.md`. */
export function formatComparison(outcomes: readonly Outcome[], isQuick: boolean): string {
  const [cpu] = cpus();
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${formatBytes(totalmem())}`;
  const words = process.argv.slice(2).map((word) => (/\s/.test(word) ? `'${word}'` : word));
  const command = ['npm run bench --', ...words].join(' ').replaceAll(/\s+/g, ' ');
  const absences = outcomes.flatMap(({ name, absences }) => absences.map((it) => [name, ...it]));
  return joinParts(
    `## ${new Date().toISOString().slice(0, 10)}, commit ${readCommit()}`,
    `\`${command}\` on ${machine}; ${readVersions().join(', ')}. See \`bench/README.md\` for how to read it.`,
    isQuick
      ? 'This is a quick run: it shows that all contests work. Its turns are too short to check the gates.'
      : formatCriteria(checkGates(outcomes)),
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
    const ratio = entry === first ? '' : formatRatio(compare(first, entry));
    return [entry.name, ...cells, ...(hasRatios ? [ratio] : [])];
  });
  return `### ${name}\n\n${note}\n\n${formatTable(head, rows)}`;
}

function formatRatio(ratio: Ratio | undefined): string {
  if (ratio === undefined) return '–';
  const [value, min, max] = ratio.map((it) => it.toFixed(2));
  return `${value} (${min} to ${max})`;
}

function readCommit(): string {
  const git = (...options: string[]) => execFileSync('git', options, { encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' with changes' : '');
}

function readVersions(): string[] {
  const packages = { sharp: 'sharp', IPX: 'ipx', Fastify: 'fastify' };
  const versions = Object.entries(packages).map(([name, directory]) => {
    const text = readFileSync(`node_modules/${directory}/package.json`, 'utf8');
    return `${name} ${(JSON.parse(text) as { version: string }).version}`;
  });
  return [`Node ${process.version.slice(1)}`, ...versions];
}
