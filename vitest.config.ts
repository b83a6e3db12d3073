import { availableParallelism } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { RunReport } from './test/support/run-report.ts';

type Options = NonNullable<TestProjectInlineConfiguration['test']>;

/**
 * Options of each suite other than `npm test`. The files of a suite are named `*.<suite>.test.ts`. A suite that measures
 * time or memory, or that uses all cores, runs one file at a time.
 */
const suites: Readonly<Record<string, Options>> = {
  browser: { testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
  front: { testTimeout: 180_000, hookTimeout: 60_000, fileParallelism: false },
  hostile: { testTimeout: 120_000, hookTimeout: 60_000, fileParallelism: false },
  metrics: { testTimeout: 30_000, hookTimeout: 60_000 },
  proxy: { testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
  replicas: {
    testTimeout: 120_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    globalSetup: ['test/support/s3/ceph-rgw.ts'],
  },
  s3: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: ['test/support/s3/ceph-rgw.ts'],
  },
};

const unhurried: Options = {
  // One process after another would load the same modules; what a test changes, it changes back.
  isolate: false,
  setupFiles: ['test/support/property-seed.ts'],
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // What is waited for comes when the machine gets to it.
  expect: { poll: { timeout: 20_000 } },
};

const projects: Readonly<Record<string, Options>> = {
  // Behind `npm test`: what a newcomer waits for; with TEST_SCALE=full, as in CI, with more rows and longer runs.
  unit: {
    ...unhurried,
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/**/*.exhaustive.test.ts',
      ...Object.keys(suites).map((name) => `test/${name}/**`),
    ],
  },
  // Whole matrices and long property runs, which only CI waits for.
  exhaustive: { ...unhurried, testTimeout: 120_000, include: ['test/**/*.exhaustive.test.ts'] },
  ...Object.fromEntries(
    Object.entries(suites).map(([name, options]) => [
      name,
      { ...options, include: [`test/${name}/*.${name}.test.ts`] },
    ]),
  ),
};

export default defineConfig({
  test: {
    // Once per run, however many projects take part.
    globalSetup: ['test/support/build.ts'],
    reporters: ['default', new RunReport()],
    // By default one core is left free; the tests wait for processes as often as they compute.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    projects: Object.entries(projects).map(([name, options], index) => ({
      // One project after another, where a run has several.
      test: { ...options, name, sequence: { groupOrder: index } },
    })),
  },
});
