import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Take minutes, or servers that are not from npm; see their own configurations.
    exclude: ['browser', 'front', 'hostile', 'proxy', 'replicas', 's3', 'surface'].map(
      (suite) => `test/${suite}/**`,
    ),
    globalSetup: ['test/support/build.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
