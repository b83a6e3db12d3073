import { afterAll, beforeAll } from 'vitest';
import { type LocalS3, startLocalS3 } from '../../support/local-s3.ts';
import { createS3ResultFixture } from '../../support/s3-bucket.ts';
import { describeResultStore } from './result-store.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
});
afterAll(() => server.close());

describeResultStore('s3', async () => createS3ResultFixture(server));
