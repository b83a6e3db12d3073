import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { formatBytes, formatTable } from '../harness/report.ts';
import type { Aim, Contest } from './contest.ts';
import { compare, measures, type Ratio, summarize } from './measures.ts';

/** An aim, and what came of it. */
export interface JudgedAim extends Aim {
  /** `undefined` where it was not measured. */
  readonly ratio: Ratio | undefined;
}

/** A contestant that could not take part in a contest. */
export interface Absence {
  readonly contest: string;
  readonly who: string;
  readonly why: string;
}

/** All that is reported. */
export interface Comparison {
  readonly contests: readonly Contest[];
  readonly aims: readonly JudgedAim[];
  readonly absences: readonly Absence[];
  /** Names of the contests that were not asked for. */
  readonly left: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
  readonly command: string;
}

/** Compares what was measured with what was wanted. */
export function judgeAims(contests: readonly Contest[], aims: readonly Aim[]): JudgedAim[] {
  return aims.map((aim) => {
    const contest = contests.find(({ name }) => name === aim.contest);
    const turnsOf = (wanted: string) =>
      contest?.entries.find(({ name }) => name === wanted)?.turns ?? [];
    const [deciding] = contest?.measures ?? [];
    const ratio = deciding && compare(turnsOf(aim.of), turnsOf(aim.to), deciding);
    return { ...aim, ratio };
  });
}

/** Whether an aim was reached: as well as it is written, with two digits. */
export function isReached({ ratio, atLeast }: JudgedAim): boolean {
  return ratio !== undefined && Number(ratio.value.toFixed(2)) >= atLeast;
}

/** All of it as Markdown. */
export function formatComparison(comparison: Comparison): string {
  const { contests, aims, absences, left, versions, command } = comparison;
  const [cpu] = cpus();
  const machine = `${cpus().length} cores (${cpu?.model ?? 'unknown'}), ${formatBytes(totalmem())}`;
  const software = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${[
    '# Darkroom and others',
    `\`${command}\` on ${machine}; ${software.join(', ')}.`,
    'Contestants take turns, on one machine with the clients. Values are medians of the turns, in brackets how far these are apart. Ratios are of medians, in brackets the least and the most of the rounds; above 1 the first one is better. CPU and memory are of the server with its children. Others: what the machine did meanwhile beside this, or what its host kept from it, as a share of its cores; where that is much, or spreads are wide, only CPU seconds can be trusted.',
    formatTable(
      ['Aim', 'Wanted', 'Measured', 'Result', 'Why not more'],
      aims.map((aim) => [
        `${aim.contest}: ${aim.of} / ${aim.to}`,
        `at least ${aim.atLeast}`,
        formatRatio(aim.ratio),
        aim.ratio === undefined ? 'not measured' : isReached(aim) ? 'reached' : 'missed',
        aim.reason ?? '',
      ]),
    ),
    ...(left.length === 0 ? [] : [`Not measured in this run: ${left.join('; ')}.`]),
    ...(absences.length === 0 ? [] : ['Left out on this machine:', formatAbsences(absences)]),
    ...contests.map(formatContest),
  ].join('\n\n')}\n`;
}

function formatAbsences(absences: readonly Absence[]): string {
  const rows = absences.map(({ contest, who, why }) => [contest, who, why]);
  return formatTable(['Contest', 'Who', 'Why'], rows);
}

function formatContest({ name, note, measures: names, entries }: Contest): string {
  const [deciding] = names;
  const [first] = entries;
  const head = ['', ...names.map((it) => measures[it].title), `${first?.name ?? ''} / it`];
  const rows = entries.map((entry) => {
    const cells = names.map((it) => {
      const summary = summarize(entry.turns, it);
      if (summary === undefined) return '–';
      const text = measures[it].format(summary.value);
      return it === deciding ? `${text} (${(summary.spread * 100).toFixed(0)} %)` : text;
    });
    const ratio = deciding && first && compare(first.turns, entry.turns, deciding);
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
export function readVersions(): Record<string, string> {
  const packages = {
    sharp: 'sharp',
    IPX: 'ipx',
    'its sharp': 'ipx/node_modules/sharp',
    Fastify: 'fastify',
  };
  const programs = {
    nginx: ['/usr/sbin/nginx', '-v'],
  };
  const versions: Record<string, string> = { Node: process.version };
  for (const [name, folder] of Object.entries(packages)) {
    const text = readFileSync(`node_modules/${folder}/package.json`, 'utf8');
    versions[name] = (JSON.parse(text) as { version: string }).version;
  }
  for (const [name, [program = '', option = '']] of Object.entries(programs)) {
    const { stdout, stderr } = spawnSync(program, [option], { encoding: 'utf8' });
    // The first number with a dot that it prints.
    const version = /\d+\.[\d.]*\d/.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[0];
    if (version !== undefined) versions[name] = version;
  }
  return versions;
}
