import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Outcome, runContest, type Stage } from './compare/contest.ts';
import { parsePeer } from './compare/contestants.ts';
import { createContests } from './compare/contests.ts';
import { checkGates, formatComparison } from './compare/report.ts';
import { requireLikenessTools } from './harness/likeness.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { Originals } from './harness/originals.ts';
import { parsePositive, publishReport } from './harness/report.ts';
import { useTemporaryDirectory } from './harness/service.ts';

/* `npm run bench`: see bench/README.md. */

const RESULTS = 'bench/RESULTS.md';

const { values } = parseArgs({
  options: {
    /** Runs all contests in two minutes, with turns too short to check the gates. */
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    /** Part of a contest's name, to run only matching contests; repeatable. */
    only: { type: 'string', multiple: true, default: [''] },
    /** `NAME TARGET COMMAND…`, parsed by `parsePeer`; repeatable. */
    peer: { type: 'string', multiple: true, default: [] },
    /** Whether to measure the likeness and size of stills, too. */
    likeness: { type: 'boolean', default: false },
    /** Whether to add the report to `bench/RESULTS.md`. */
    write: { type: 'boolean', default: false },
  },
});
const { quick: isQuick } = values;
if (isQuick && values.write) throw new Error('--write: a quick run checks no gates');
if (values.likeness) requireLikenessTools();
const turns = isQuick
  ? { rounds: 1, turnMs: 400, warmUpTurns: 1 }
  : {
      rounds: Math.ceil(parsePositive('rounds', values.rounds)),
      turnMs: parsePositive('seconds', values.seconds) * 1000,
      warmUpTurns: 15,
    };
const all = createContests(values.peer.map(parsePeer));
const contests = all.filter(({ name }) => values.only.some((part) => name.includes(part)));
if (contests.length === 0) {
  throw new Error(`--only: expected parts of ${all.map(({ name }) => name).join('; ')}`);
}

const outcomes = await useTemporaryDirectory(async (directory) => {
  const stage: Stage = {
    ...turns,
    generator: new LoadGenerator(),
    originals: new Originals(directory, isQuick),
    isLikenessWanted: values.likeness,
    helpers: [],
  };
  const finished: Outcome[] = [];
  try {
    for (const contest of contests) {
      process.stderr.write(`${new Date().toISOString()} ${contest.name}\n`);
      finished.push(await runContest(contest, stage));
    }
  } finally {
    stage.generator.close();
    for (const helper of stage.helpers) await helper.stop();
  }
  return finished;
});
const report = formatComparison(outcomes, isQuick);
publishReport('compare.md', report, isQuick ? [] : checkGates(outcomes));
if (values.write) {
  // Before the other sections, which begin with the first heading of the second level.
  const text = readFileSync(RESULTS, 'utf8');
  const at = text.indexOf('\n## ') + 1;
  writeFileSync(RESULTS, `${text.slice(0, at)}${report}\n${text.slice(at)}`);
}
