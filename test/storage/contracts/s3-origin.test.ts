import { afterAll, beforeAll } from 'vitest';
import { type LocalS3, startLocalS3 } from '../../support/local-s3.ts';
import { createS3Fixture } from '../../support/s3-bucket.ts';
import { describeOrigin } from './origin.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3();
});
afterAll(() => server.close());

describeOrigin('s3', async () => createS3Fixture(server));
