/** Finds out by probes which test files reach which mutants. */

import * as fs from 'node:fs';
import path from 'node:path';
import { ROOT, runTests, writeSources } from './copies.mjs';

/** @typedef {import('./draw.mjs').Mutant} Mutant */

/** The program of confined workers, in which probes cannot write. */
const WORKER = 'src/workers/child/main.ts';

/** Imports of files, except imports of types, which do not exist at run time. */
const IMPORTS = /^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'|import\('(\.[^']+)'\)/gm;

/** Lists the sources that a source imports, with itself. @param {string} file @param {Set<string>} found */
function listImports(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  const text = fs.readFileSync(path.join(ROOT, file), 'utf8');
  for (const [, one, other] of text.matchAll(IMPORTS)) {
    listImports(path.join(path.dirname(file), one ?? other), found);
  }
  return found;
}

/** Function that a probe calls; hoisted, since the first probes run while their module is evaluated. */
const probeFunction = (/** @type {string} */ log) => `
function __reach(id) {
  const reached = (globalThis.__reached ??= new Set());
  if (reached.has(id)) return;
  reached.add(id);
  try { globalThis['process'].getBuiltinModule('fs').appendFileSync('${log}', id + '\\n'); } catch {}
}
`;

/** Adds the probes of all mutants to their sources. @param {Mutant[]} mutants @param {string} log */
function addProbes(mutants, log) {
  return mutants
    .filter(({ file }, index) => mutants.findIndex((other) => other.file === file) === index)
    .map(({ file, text }) => {
      const inserts = mutants.flatMap((mutant, id) =>
        mutant.file === file ? mutant.probe(id) : [],
      );
      inserts.sort((one, other) => other.at - one.at);
      const insert = (before, { at, text: probe }) =>
        before.slice(0, at) + probe + before.slice(at);
      return /** @type {const} */ ([file, inserts.reduce(insert, text) + probeFunction(log)]);
    });
}

/** Parses a log of probes: by test file, the ids of what it reached. @param {string} log */
function parseLog(log) {
  const reachedBy = new Map();
  let reached = new Set();
  for (const line of log.split('\n')) {
    if (line.startsWith('# ')) {
      reached = new Set();
      reachedBy.set(line.slice(2), reached);
    } else reached.add(line);
  }
  return reachedBy;
}

/**
 * Runs all unit tests once with probes, divided among the copies. Returns the durations of the green test files, and
 * the green test files that reach a mutant.
 */
export async function probeTests(copies, mutants, print) {
  const durationsMs = new Map();
  const reachedBy = new Map();
  const failed = [];
  const probe = async (copy, index) => {
    const log = path.join(copy, 'mutants-reached');
    fs.writeFileSync(log, '');
    fs.chmodSync(log, 0o666); // for processes of other users
    writeSources(copy, addProbes(mutants, log));
    const { results } = await runTests(copy, { share: `${index + 1}/${copies.length}` });
    for (const { name, status, startTime, endTime } of results) {
      const file = path.relative(copy, name);
      durationsMs.set(file, endTime - startTime);
      if (status !== 'passed') failed.push(file);
    }
    for (const [file, ids] of parseLog(fs.readFileSync(log, 'utf8'))) reachedBy.set(file, ids);
    writeSources(
      copy,
      mutants.map(({ file, text }) => [file, text]),
    );
  };
  await Promise.all(copies.map(probe));
  // A probe may make a test fail: each failed file runs again without probes.
  for (const file of failed) {
    const { isGreen } = await runTests(copies[0], { files: [file] });
    print(`${file} failed with probes${isGreen ? '' : ', and without: it is not used'}`);
    if (!isGreen) durationsMs.delete(file);
  }
  const confined = listImports(WORKER);
  const listTests = (id) => {
    const isConfined = confined.has(mutants[id].file);
    const reaches = (ids) => ids?.has(String(id)) || (isConfined && ids?.has('worker'));
    return [...durationsMs.keys()].filter((test) => reaches(reachedBy.get(test)));
  };
  return { durationsMs, listTests };
}
