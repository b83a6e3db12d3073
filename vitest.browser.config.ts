import { defineConfig } from 'vitest/config';

/**
 * The suite behind `npm run test:browser`: the explorer in a real browser, against the compiled service. It
 * needs Debian's `chromium`, or another one that CHROMIUM names. With SCREENSHOTS=write it also writes the
 * pictures of the README.
 */
export default defineConfig({
  test: {
    include: ['test/browser/*.browser.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
