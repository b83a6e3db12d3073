/**
 * Records, while the probes of `tools/mutants.mjs` are in place, which test file runs and whether it starts confined
 * workers, whose probes cannot write.
 */

import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';

const POLL_MS = 200;

const root = path.resolve(import.meta.dirname, '../..');
const record = (line) => appendFileSync(path.join(root, 'mutants-reached'), `${line}\n`);

function hasWorker() {
  return readdirSync('/proc').some((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'latin1').includes(`${root}/dist/workers/child/`);
    } catch {
      return false; // no process, or one that has ended
    }
  });
}

record(`# ${path.relative(root, expect.getState().testPath ?? '')}`);
const poll = setInterval(() => {
  if (!hasWorker()) return;
  record('worker');
  clearInterval(poll);
}, POLL_MS).unref();
