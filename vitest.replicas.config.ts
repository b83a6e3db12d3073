import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:replicas`; it needs Ceph and nginx, and so is not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/replicas/*.replicas.test.ts'],
    globalSetup: ['test/support/build.ts', 'test/support/ceph-setup.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Loads the machine as it is: one suite at a time.
    fileParallelism: false,
  },
});
