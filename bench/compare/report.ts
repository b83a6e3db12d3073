import { cpus, totalmem } from 'node:os';
import { formatBytes, formatMs, formatTable } from '../harness/markdown.ts';
import { quantile } from '../harness/quantile.ts';
import type { Contest, Entry, Turn } from './contest.ts';

/** What has to be shown, as the ratio of two contestants' medians in one contest. */
export interface Aim {
  readonly contest: string;
  readonly of: string;
  readonly to: string;
  readonly atLeast: number;
}

/** An aim, and what came of it. */
export interface JudgedAim extends Aim {
  /** `undefined` where it was not measured. */
  readonly ratio: number | undefined;
}

/** Median of the turns, and how far they are apart, as a part of it. */
function summarize(turns: readonly Turn[], read: (turn: Turn) => number) {
  const values = turns.map(read);
  const median = quantile(values, 0.5) ?? 0;
  return { median, spread: (Math.max(...values) - Math.min(...values)) / median };
}

const perSecond = ({ turns }: Entry) => summarize(turns, (turn) => turn.perSecond);

/** Compares what was measured with what was wanted. */
export function judgeAims(contests: readonly Contest[], aims: readonly Aim[]): JudgedAim[] {
  return aims.map((aim) => {
    const entries = contests.find(({ name }) => name === aim.contest)?.entries ?? [];
    const [of, to] = [aim.of, aim.to].map((wanted) => entries.find(({ name }) => name === wanted));
    const ratio = of && to && perSecond(of).median / perSecond(to).median;
    return { ...aim, ratio };
  });
}

/** All of it as Markdown. */
export function formatContests(
  contests: readonly Contest[],
  aims: readonly JudgedAim[],
  versions: Readonly<Record<string, string>>,
  command: string,
): string {
  const [cpu] = cpus();
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${formatBytes(totalmem())}`;
  const software = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${[
    '# Darkroom and others',
    `\`${command}\` on ${machine}; ${software.join(', ')}. Contestants take turns, on one machine with the clients; medians of the turns, and in brackets how far these are apart.`,
    formatTable(
      ['Aim', 'Wanted', 'Measured', 'Result'],
      aims.map(({ contest, of, to, atLeast, ratio }) => [
        `${contest}: ${of} / ${to}`,
        `at least ${atLeast}`,
        ratio === undefined ? '–' : ratio.toFixed(2),
        ratio === undefined ? 'not measured' : ratio >= atLeast ? 'reached' : 'missed',
      ]),
    ),
    ...contests.map(formatContest),
  ].join('\n\n')}\n`;
}

function formatContest({ name, entries }: Contest): string {
  const head = ['', 'Answers/s', 'p50', 'p99', 'CPU s per 1 000', 'Peak memory', 'Answers'];
  const rows = entries.map((entry) => {
    const { median, spread } = perSecond(entry);
    const of = (read: (turn: Turn) => number): number => summarize(entry.turns, read).median;
    return [
      entry.name,
      `${median.toFixed(median < 100 ? 1 : 0)} (${(spread * 100).toFixed(0)} %)`,
      formatMs(of(({ p50Ms }) => p50Ms)),
      formatMs(of(({ p99Ms }) => p99Ms)),
      of(({ cpuSecondsPer1000 }) => cpuSecondsPer1000).toFixed(2),
      formatBytes(of(({ peakBytes }) => peakBytes)),
      entry.turns.reduce((sum, { answers }) => sum + answers, 0),
    ];
  });
  return `## ${name}\n\n${formatTable(head, rows)}`;
}
