import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Need servers that are not from npm; see their own configurations.
    exclude: ['test/proxy/**', 'test/s3/**'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
