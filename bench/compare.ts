import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Absence, hold, type Outcome } from './compare/contest.ts';
import { externalContest } from './compare/external.ts';
import { openOriginals } from './compare/originals.ts';
import { findPeer, parseServer } from './compare/renderers.ts';
import { createRenderContests } from './compare/renders.ts';
import { formatComparison, judgeRequirements } from './compare/report.ts';
import { sendingContests } from './compare/sending.ts';
import { requireLikenessTools } from './harness/likeness.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { parsePositive, publishReport } from './harness/report.ts';

/* `npm run bench`: see bench/README.md. */

const { values } = parseArgs({
  options: {
    /** All contests in two minutes, with turns too short to judge anything. */
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    /** Part of a contest's name: only these; may be given several times. */
    only: { type: 'string', multiple: true, default: [''] },
    /** `thumbor` or `oximg`, if installed; may be given several times. */
    peer: { type: 'string', multiple: true, default: [] },
    /** `NAME=http://host:port/resize?w={width}&f={format}&src={path}`; may be given several times. */
    server: { type: 'string', multiple: true, default: [] },
    /** Empty folder for the originals, which servers of `--server` know. */
    folder: { type: 'string' },
    /** Whether likeness and bytes of stills are measured too. */
    likeness: { type: 'boolean', default: false },
    /** Whether the report is added to `bench/RESULTS.md`. */
    write: { type: 'boolean', default: false },
  },
});
const { quick: isQuick } = values;
if (isQuick && values.write) throw new Error('--write: a quick run judges nothing');

const RESULTS = 'bench/RESULTS.md';
const QUICK = { rounds: 1, turnMs: 400, practiceTurns: 1 } as const;
const LONG = {
  rounds: Math.ceil(parsePositive('rounds', values.rounds)),
  turnMs: parsePositive('seconds', values.seconds) * 1000,
  practiceTurns: 5,
} as const;

async function main(): Promise<number> {
  const peers = [...values.peer.map(findPeer), ...values.server.map(parseServer)];
  const contests = [...createRenderContests(peers), ...sendingContests, externalContest];
  const isWanted = ({ name }: { readonly name: string }): boolean =>
    values.only.some((part) => name.includes(part));
  const skipped = contests.filter((contest) => !isWanted(contest)).map(({ name }) => name);
  if (skipped.length === contests.length) {
    throw new Error(`--only: expected parts of ${skipped.join('; ')}`);
  }
  if (values.likeness) requireLikenessTools();
  const absences: Absence[] = [];
  const generator = new LoadGenerator('equal');
  const originals = await openOriginals(values.folder, isQuick);
  const stage = {
    ...(isQuick ? QUICK : LONG),
    ...{ generator, originals, isLikenessWanted: values.likeness, absences },
  };
  const outcomes: Outcome[] = [];
  try {
    for (const contest of contests.filter(isWanted)) {
      process.stderr.write(`${new Date().toISOString()} ${contest.name}\n`);
      outcomes.push(await hold(contest, stage));
    }
  } finally {
    generator.close();
    await originals.remove();
  }
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  const report = formatComparison(outcomes, { absences, skipped, command, isQuick });
  publishReport('compare.md', report);
  if (values.write) addToResults(report);
  if (isQuick) return 0;
  const gates = judgeRequirements(outcomes).filter(({ kind }) => kind === 'gate');
  return gates.every(({ isReached }) => isReached) ? 0 : 1;
}

/** Puts a report before the others, which begin with the first heading of the second level. */
function addToResults(report: string): void {
  const text = readFileSync(RESULTS, 'utf8');
  const at = text.indexOf('\n## ') + 1;
  writeFileSync(RESULTS, `${text.slice(0, at)}${report}\n${text.slice(at)}`);
  process.stdout.write(`Added to ${RESULTS}\n`);
}

process.exitCode = await main();
