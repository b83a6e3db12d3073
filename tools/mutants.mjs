/**
 * Draws mutants of `src`, runs the unit tests against each and reports, per top directory, how many are killed:
 *
 *     node tools/mutants.mjs [--seed 1] [--count 40] [--directory pipeline]... [--jobs 2] [--list] [--json FILE]
 *
 * A mutant is one small change at one node of TypeScript's own syntax tree: a comparison, an operator, a condition, a
 * number, a boolean, a string that is compared or returned, a removed statement or returned value, an operand of `??`,
 * a `?.`. The draw is uniform over the nodes of a directory; files directly in `src` and the one of default-avatars are
 * left out. A seed draws the same mutants from the same source. Mutants with a type error in their file are redrawn.
 *
 * The tests run in copies of the tree in a temporary directory, one copy per job. First, every unit test file runs by
 * itself with a probe at each mutant, which records the test files that reach the mutant, in their own process or in
 * one that they start from `dist`. Confined workers cannot record: a test file that starts one counts as reaching
 * everything that workers import. Then each mutant is compiled, and the test files that reach it run until the first
 * failure, likely and fast ones first. Test files that fail without a mutant are not used. `timeout` counts mutants
 * that were killed because a test or the whole run exceeded its time limit; `unreached` ones survive without a run.
 */

import * as fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createCopies, ROOT, runTests, writeSources } from './mutants/copies.mjs';
import { openSources } from './mutants/draw.mjs';
import { probeTests } from './mutants/reach.mjs';

const DIRECTORIES = 'cli config contract explorer formats http pipeline storage telemetry workers';

/** Time limit of a run of tests: a fixed part, and a multiple of the time that its test files took one at a time. */
const LIMIT = { fixedMs: 120_000, factor: 3 };

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '40' },
    directory: { type: 'string', multiple: true, default: DIRECTORIES.split(' ') },
    jobs: { type: 'string', default: '2' },
    list: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const { seed, count } = options;

const brief = (text) => text.replace(/\s+/g, ' ').slice(0, 80);

const describe = ({ file, line, before, after }) =>
  `${file}:${line}  ${brief(before)} → ${after === ';' ? '(removed)' : brief(after)}`;

const print = (text) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

/** Draws the mutants, one of each directory after another, so that an interrupted run has measured all directories. */
function drawMutants() {
  const sources = openSources(ROOT);
  const drawn = options.directory.map((directory) =>
    sources.draw(directory, { seed, count: Number(count) }),
  );
  sources.close();
  const rounds = Array.from({ length: Number(count) }, (_, index) => index);
  return rounds.flatMap((index) => drawn.flatMap((some) => some[index] ?? []));
}

/** Returns the verdict on a mutant after a run of tests. */
function verdictOf(run, copy) {
  if (run === undefined) return { status: 'timeout', by: 'the whole run' };
  if (run.isGreen) return { status: 'survived' };
  const file = run.results.find(({ status }) => status === 'failed');
  if (file === undefined) return { status: 'killed', by: 'an error outside tests' };
  const failed = file.assertionResults.filter(({ status }) => status === 'failed');
  const isLate = failed.some(({ failureMessages }) =>
    /timed out|in time/i.test(`${failureMessages}`),
  );
  const test = failed[0]?.fullName ?? brief(file.message);
  return { status: isLate ? 'timeout' : 'killed', by: path.relative(copy, file.name), test };
}

/** Runs tests against a mutant. Only a failure that repeats counts: on a busy machine, tests may fail by chance. */
async function measure(copy, { file, text, mutated }, files, limitMs) {
  const run = async (/** @type {string[]} */ some) =>
    verdictOf(await runTests(copy, { files: some, limitMs }), copy);
  writeSources(copy, [[file, mutated]]);
  let verdict = await run(files);
  if (verdict.status !== 'survived') {
    const again = await run(files.includes(verdict.by) ? [verdict.by] : files);
    verdict = again.status === 'survived' ? await run(files) : again;
  }
  fs.writeFileSync(path.join(copy, file), text);
  return verdict;
}

/** Counts results per directory. */
const summarize = (results) =>
  options.directory.map((directory) => {
    const own = results.filter((each) => each.directory === directory);
    const [killed, timeout, survived, unreached] = [
      'killed',
      'timeout',
      'survived',
      'unreached',
    ].map((status) => own.filter((each) => each.status === status).length);
    const killedPercent = Math.round((100 * (killed + timeout)) / own.length);
    return { directory, drawn: own.length, killed, timeout, survived, unreached, killedPercent };
  });

async function main(mutants) {
  const startMs = Date.now();
  const secondsSince = (/** @type {number} */ ms) => Math.round((Date.now() - ms) / 1000);
  const copies = createCopies(Number(options.jobs));
  print(`${mutants.length} mutants; the unit tests run once with probes`);
  const { durationsMs, listTests } = await probeTests(copies, mutants, print);
  const probeSeconds = secondsSince(startMs);
  print(`${durationsMs.size} test files are used; this took ${probeSeconds} s`);

  const results = [];
  const queue = [...mutants.keys()];
  /** By directory and test file: how many mutants it has killed. */
  const kills = new Map();
  const work = async (/** @type {string} */ copy) => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      const { directory, file, line, before, after } = mutants[id];
      const mutantMs = Date.now();
      const costOf = (/** @type {string} */ test) => {
        const isNear = test.startsWith(`test/${directory}/`);
        return (
          durationsMs.get(test) / (1 + (isNear ? 4 : 0) + 3 * (kills.get(directory + test) ?? 0))
        );
      };
      const tests = listTests(id).sort((one, other) => costOf(one) - costOf(other));
      const serialMs = tests.reduce((sum, test) => sum + durationsMs.get(test), 0);
      const limitMs = LIMIT.fixedMs + LIMIT.factor * serialMs;
      const verdict =
        tests.length === 0
          ? { status: 'unreached' }
          : await measure(copy, mutants[id], tests, limitMs);
      const killer = directory + verdict.by;
      kills.set(killer, (kills.get(killer) ?? 0) + 1);
      const cost = { tests: tests.length, seconds: secondsSince(mutantMs) };
      results.push({ directory, file, line, before, after, ...verdict, ...cost });
      print(
        `${results.length}/${mutants.length} ${verdict.status} ${describe(mutants[id])} (${cost.tests} test files, ${cost.seconds} s)`,
      );
      if (options.json === undefined) continue;
      const totals = {
        seed,
        count,
        probeSeconds,
        seconds: secondsSince(startMs),
        directories: summarize(results),
      };
      fs.writeFileSync(
        options.json,
        `${JSON.stringify({ ...totals, mutants: results }, undefined, 2)}\n`,
      );
    }
  };
  await Promise.all(copies.map(work));
  console.table(summarize(results));
  for (const each of results) {
    if (/^(survived|unreached)$/.test(each.status))
      console.log(`${each.status}  ${describe(each)}`);
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
const mutants = drawMutants();
if (options.list) for (const mutant of mutants) console.log(describe(mutant));
else await main(mutants);
