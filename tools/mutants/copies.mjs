/** Creates copies of the tree in a temporary directory, changes sources in them, and runs unit tests there. */

import { execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{ status: string, fullName: string, failureMessages: string[] }} TestResult
 * @typedef {{ name: string, status: string, message: string, startTime: number, endTime: number,
 *   assertionResults: TestResult[] }} FileResult  As vitest's reporter writes it.
 */

/** Directory of the checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Names in the root of the checkout that are not copied. */
const EXCLUDED = ['.git', 'node_modules', 'dist', 'test-report'];

/** Creates and builds copies, which are removed when the process exits; returns their directories. */
export function createCopies(count) {
  const temporary = fs.mkdtempSync(path.join(tmpdir(), 'darkroom-mutants-'));
  const copies = Array.from({ length: count }, (_, index) => path.join(temporary, String(index)));
  fs.chmodSync(temporary, 0o755); // workers have users of their own
  process.once('exit', () => {
    copies.forEach(endProcesses);
    fs.rmSync(temporary, { recursive: true, force: true });
  });
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' });
  const env = { ...process.env, GIT_COMMIT: commit.trim() }; // a copy is not a repository
  for (const copy of copies) {
    const excluded = EXCLUDED.map((name) => path.join(ROOT, name));
    fs.cpSync(ROOT, copy, { recursive: true, filter: (file) => !excluded.includes(file) });
    execFileSync('cp', ['-al', path.join(ROOT, 'node_modules'), copy]);
    execFileSync('npm', ['run', 'build:tests', '--silent'], { cwd: copy, env });
  }
  return copies;
}

/** Ends all processes that run in a copy. @param {string} copy */
function endProcesses(copy) {
  for (const id of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = fs.readFileSync(`/proc/${id}/cmdline`, 'latin1');
      const isIn = `${fs.readlinkSync(`/proc/${id}/cwd`)}/`.startsWith(`${copy}/`);
      if (isIn || command.includes(`${copy}/`)) process.kill(Number(id), 'SIGKILL');
    } catch {
      // The process has ended, or is one of the kernel.
    }
  }
}

/** Replaces sources in a copy and compiles them, ignoring type errors. `texts` are pairs of path and text. */
export function writeSources(copy, texts) {
  for (const [file, text] of texts) fs.writeFileSync(path.join(copy, file), text);
  execFileSync('npm', ['run', 'build', '--silent'], { cwd: copy });
}

/**
 * Runs test files in this order until the first failure; without `files`, probes the part `share` of all test files.
 *
 * @param {string} copy
 * @param {{ files?: string[], share?: string, limitMs?: number }} options
 * @returns {Promise<{ isGreen: boolean, results: FileResult[] } | undefined>} `undefined` if the time limit ends the run
 */
export async function runTests(copy, { files, share, limitMs }) {
  const list = path.join(copy, 'mutants-run.json');
  const report = path.join(copy, 'mutants-report.json');
  fs.rmSync(report, { force: true });
  if (files) fs.writeFileSync(list, JSON.stringify(files));
  const command = 'node_modules/.bin/vitest';
  const args = ['run', '--config', 'tools/mutants/vitest.config.mjs'];
  if (share) args.push(`--shard=${share}`);
  const child = spawn(command, args, { cwd: copy, stdio: 'ignore' });
  let isLate = false;
  const end = () => {
    isLate = true;
    endProcesses(copy);
  };
  const timer = limitMs && setTimeout(end, limitMs);
  const status = await new Promise((resolve) => void child.once('close', resolve));
  clearTimeout(timer);
  endProcesses(copy);
  if (isLate) return undefined;
  const results = fs.existsSync(report)
    ? JSON.parse(fs.readFileSync(report, 'utf8')).testResults
    : [];
  return { isGreen: status === 0, results };
}
