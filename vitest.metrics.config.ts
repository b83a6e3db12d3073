import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:metrics`; it needs promtool and Prometheus, and so is not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/metrics/*.metrics.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
