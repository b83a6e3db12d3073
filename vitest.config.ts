import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Take minutes, or servers that are not from npm; see their own configurations.
    exclude: ['browser', 'front', 'hostile', 'metrics', 'proxy', 'replicas', 's3', 'surface'].map(
      (suite) => `test/${suite}/**`,
    ),
    globalSetup: ['test/support/build.ts'],
    testTimeout: 30_000,
    // What is waited for comes when the machine gets to it.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 30_000,
  },
});
