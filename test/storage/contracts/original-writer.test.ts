import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { createFilesystemOriginalWriter } from '../../../src/storage/filesystem/filesystem-original-writer.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3WriterFixture } from '../../support/s3/s3-original-writer.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
});
afterAll(() => server.close());

describeOriginalWriter('the filesystem writer', async () => {
  const { path, remove } = await makeTemporaryFolder();
  return {
    writer: await createFilesystemOriginalWriter(path),
    origin: await createFilesystemOrigin(path),
    list: async () => {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => relative(path, join(parentPath, name)));
    },
    close: remove,
  };
});

// The server knows no AbortMultipartUpload; that parts are removed is shown on Ceph (`npm run test:s3`).
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3WriterFixture(server),
  keepsParts: true,
  ignoresConditions: true,
}));
