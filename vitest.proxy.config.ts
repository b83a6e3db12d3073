import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:proxy`; it needs nginx and openssl, and so is not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/proxy/*.proxy.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // What is measured here is time, too: one suite at a time.
    fileParallelism: false,
  },
});
