import { defineConfig } from 'vitest/config';

/**
 * The suite behind `npm run test:surface`: a model of the whole HTTP surface against a real process.
 * SURFACE_RUNS sets the number of conversations, SURFACE_SEED where the walk begins.
 */
export default defineConfig({
  test: {
    include: ['test/surface/*.surface.test.ts'],
    globalSetup: ['test/support/build.ts'],
    testTimeout: 60_000,
    hookTimeout: 30_000,
  },
});
