import { defineConfig } from 'vitest/config';

/** The suite behind `npm run test:s3`; it needs Ceph (see README), and so is not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/s3/*.s3.test.ts'],
    globalSetup: ['test/support/build.ts', 'test/support/ceph-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
