import { beforeAll } from 'vitest';
import { openFolderStorage } from '../../support/folder-storage.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3WriterFixture } from '../../support/s3/s3-original-writer.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
  return server.close;
});

describeOriginalWriter('the filesystem writer', async () => {
  const { path, list, remove } = await makeTemporaryFolder();
  return { ...(await openFolderStorage(path)), list, close: remove };
});

// The server knows no AbortMultipartUpload; that parts are removed is shown on Ceph (`npm run test:s3`).
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3WriterFixture(server),
  keepsParts: true,
  ignoresConditions: true,
}));
