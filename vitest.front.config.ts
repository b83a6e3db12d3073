import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:front`: crowds of clients at the compiled service. It takes minutes. */
export default defineConfig({
  test: {
    include: ['test/front/*.front.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
