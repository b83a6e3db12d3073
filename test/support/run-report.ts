import type { Reporter, TestModule } from 'vitest/node';

/** Claims about the service, with the tests that prove them; the first match counts. */
const claims: readonly (readonly [claim: string, files: RegExp])[] = [
  ['Pictures are correct', /^(golden|transforms|formats)\/|^workers\/(gif|heic|decoders|frame-)/],
  [
    'Hostile files and clients do no harm, and a failed render affects no other',
    /^(hostile|workers|http\/connections|pipeline\/render)\//,
  ],
  ['Nothing is fetched, rendered or stored twice, or kept after a purge', /^(cache|pipeline)\//],
  ['URLs, headers and errors are those of the contract', /^(contract|surface|clients|http)\//],
  ['Directories, buckets, other sites and stores behave the same', /^storage\//],
  ['Settings, commands, log and documents are correct', /^/],
];

/** Suites in addition to `npm test`; see docs/contributing.md. */
const suites = 'exhaustive hostile front s3 proxy replicas browser metrics'.split(' ');

/**
 * Summarizes a run: results by claim, skipped tests, and suites that did not run. Tests are skipped if a tool or a
 * privilege is missing; with `TEST_TOOLS=required`, as in CI, a skipped test fails the run.
 */
export class RunReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const write = (line: string): void => void process.stdout.write(`${line}\n`);
    const names = new Set(modules.map(({ project }) => project.name));
    if (names.has('unit')) for (const line of summarize(modules)) write(line);
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map(
        (test) => `  ${module.relativeModuleId}: ${test.fullName}`,
      ),
    );
    const isRed = process.env.TEST_TOOLS === 'required' && skipped.length > 0;
    if (skipped.length > 0) write(`\nSkipped${isRed ? ', and TEST_TOOLS=required' : ''}:`);
    for (const line of skipped) write(line);
    if (isRed) process.exitCode = 1;
    if (!names.has('unit')) return;
    write('\nNot run here (docs/contributing.md):');
    if (process.env.TEST_SCALE !== 'full') write('  TEST_SCALE=full npm test');
    for (const name of suites) if (!names.has(name)) write(`  npm run test:${name}`);
  }
}

/** Counts tests and failures by claim; omits claims without tests in this run. */
function summarize(modules: readonly TestModule[]): string[] {
  const claimOf = ({ relativeModuleId }: TestModule) =>
    claims.find(([, files]) => files.test(relativeModuleId.replace(/^test\//, '')))?.[0];
  return claims.flatMap(([claim]) => {
    const own = modules.filter((module) => claimOf(module) === claim);
    const [passed = 0, failed = 0] = (['passed', 'failed'] as const).map(
      (state) => own.flatMap(({ children }) => [...children.allTests(state)]).length,
    );
    const failures = failed === 0 ? '' : `, ${failed} failed`;
    const line = `  ${failed === 0 ? '✓' : '×'} ${claim} (${passed} tests${failures})`;
    return passed + failed === 0 ? [] : [line];
  });
}
