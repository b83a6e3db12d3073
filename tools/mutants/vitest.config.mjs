/**
 * Configures vitest in a copy of the tree that `tools/mutants.mjs` has made and built: the unit project without its
 * build. `mutants-run.json` has the test files to run, in this order, to the first failure; without it, all of them
 * run, one at a time, and `probe.mjs` records what each of them reaches.
 */

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { BaseSequencer } from 'vitest/node';
import config from '../../vitest.config.ts';

const root = path.resolve(import.meta.dirname, '../..');
const run = path.join(root, 'mutants-run.json');
const { test: unit } = config.test.projects.find(({ test }) => test.name === 'unit');
const files = existsSync(run) ? JSON.parse(readFileSync(run, 'utf8')) : undefined;

class InOrder extends BaseSequencer {
  sort(specifications) {
    const rank = ({ moduleId }) => files.indexOf(path.relative(root, moduleId));
    return specifications.toSorted((one, other) => rank(one) - rank(other));
  }
}

const ordered = { include: files, bail: 1, sequence: { sequencer: InOrder } };
const probing = {
  isolate: true,
  fileParallelism: false,
  setupFiles: [...unit.setupFiles, 'tools/mutants/probe.mjs'],
};

export default {
  root,
  test: {
    ...unit,
    maxWorkers: config.test.maxWorkers,
    reporters: 'json',
    outputFile: path.join(root, 'mutants-report.json'),
    ...(files ? ordered : probing),
  },
};
