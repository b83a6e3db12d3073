import type { Reporter, TestModule } from 'vitest/node';

/**
 * Lists the tests that were skipped, each for the want of a tool or a right of this machine. Where
 * `TEST_TOOLS=required` says that all of them are here, as CI does, a skipped test fails the run.
 */
export class SkippedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map(
        (test) => `${module.relativeModuleId}: ${test.fullName}`,
      ),
    );
    if (skipped.length === 0) return;
    const isRed = process.env.TEST_TOOLS === 'required';
    process.stdout.write(`\nSkipped${isRed ? ', and TEST_TOOLS=required' : ''}:\n`);
    for (const each of skipped) process.stdout.write(`  ${each}\n`);
    if (isRed) process.exitCode = 1;
  }
}
