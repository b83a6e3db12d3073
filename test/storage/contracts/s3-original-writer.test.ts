import { afterAll, beforeAll } from 'vitest';
import { type LocalS3, startLocalS3 } from '../../support/local-s3.ts';
import { createS3WriterFixture } from '../../support/s3-original-writer.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
});
afterAll(() => server.close());

// The server knows no AbortMultipartUpload; that parts are removed is shown on Ceph (`npm run test:s3`).
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3WriterFixture(server),
  keepsParts: true,
}));
