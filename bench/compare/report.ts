import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { formatBytes, formatTable, joinParts } from '../harness/report.ts';
import type { Absence, Workload } from './contest.ts';
import { compare, type MeasureName, measures, type Ratio, summarize } from './measures.ts';

/** A workload, and how good each contestant was at it. */
export type Contest = Omit<Workload, 'hold'> & Awaited<ReturnType<Workload['hold']>>;

/** Compares what was measured with what was wanted. */
export function judgeAims(contests: readonly Contest[]) {
  return contests.flatMap(({ name: contest, aims, decidedBy, entries }) => {
    const turnsOf = (wanted: string) => entries.find(({ name }) => name === wanted)?.turns ?? [];
    return aims.map((aim) => {
      const ratio = compare(turnsOf(aim.of), turnsOf(aim.to), decidedBy);
      // As well as it is written, with two digits.
      const isReached = ratio !== undefined && Number(ratio.value.toFixed(2)) >= aim.atLeast;
      return { contest, ...aim, ratio, isReached };
    });
  });
}

/**
 * All of it as Markdown.
 *
 * @param left names of the contests that were not asked for
 */
export function formatComparison(
  contests: readonly Contest[],
  absences: readonly Absence[],
  left: readonly string[],
  command: string,
): string {
  const [cpu] = cpus();
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${formatBytes(totalmem())}`;
  const software = Object.entries(readVersions()).map(([name, version]) => `${name} ${version}`);
  return joinParts(
    '# Darkroom and others',
    `\`${command}\` on ${machine}; ${software.join(', ')}.`,
    'Contestants take turns, on one machine with the clients. Values are medians of the turns, in brackets how far these are apart. Ratios are of medians, in brackets the least and the most of the rounds; above 1 the first one is better. CPU and memory are of the server with its children. Others: what the machine did meanwhile beside this, or what its host kept from it, as a share of its cores; where that is much, or spreads are wide, only CPU can be trusted.',
    formatTable(
      ['Aim', 'Wanted', 'Measured', 'Result', 'Why not more'],
      judgeAims(contests).map(({ contest, of, to, atLeast, ratio, isReached, reason = '' }) => [
        `${contest}: ${of} / ${to}`,
        `at least ${atLeast}`,
        formatRatio(ratio),
        ratio === undefined ? 'not measured' : isReached ? 'reached' : 'missed',
        reason,
      ]),
    ),
    left.length > 0 && `Not measured in this run: ${left.join('; ')}.`,
    absences.length > 0 && 'Left out on this machine:',
    absences.length > 0 && formatTable(['Contest', 'Who', 'Why'], absences),
    ...contests.map(formatContest),
  );
}

function formatContest({ name, note, decidedBy, entries }: Contest): string {
  const [first] = entries;
  const columns = (Object.keys(measures) as MeasureName[]).filter((measure) =>
    entries.some(({ turns }) => summarize(turns, measure) !== undefined),
  );
  const head = ['', ...columns.map((it) => measures[it].title), `${first?.name ?? ''} / it`];
  const rows = entries.map((entry) => {
    const cells = columns.map((measure) => {
      const summary = summarize(entry.turns, measure);
      if (summary === undefined) return '–';
      const text = measures[measure].format(summary.value);
      return measure === decidedBy ? `${text} (${(summary.spread * 100).toFixed(0)} %)` : text;
    });
    const ratio = first && compare(first.turns, entry.turns, decidedBy);
    return [entry.name, ...cells, entry === first ? '' : formatRatio(ratio)];
  });
  return `## ${name}\n\n${note}\n\n${formatTable(head, rows)}`;
}

function formatRatio(ratio: Ratio | undefined): string {
  if (ratio === undefined) return '–';
  const [value, least, most] = [ratio.value, ratio.least, ratio.most].map((it) => it.toFixed(2));
  return `${value} (${least} to ${most})`;
}

/** What is compared, by name; only what is installed. */
function readVersions(): Record<string, string> {
  const packages = {
    sharp: 'sharp',
    IPX: 'ipx',
    'its sharp': 'ipx/node_modules/sharp',
    Fastify: 'fastify',
  };
  const versions: Record<string, string> = { Node: process.version };
  for (const [name, folder] of Object.entries(packages)) {
    const text = readFileSync(`node_modules/${folder}/package.json`, 'utf8');
    versions[name] = (JSON.parse(text) as { version: string }).version;
  }
  return versions;
}
