import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:hostile`; it takes minutes, and so is not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/hostile/*.hostile.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is measured here is time and memory, too: one suite at a time.
    fileParallelism: false,
  },
});
