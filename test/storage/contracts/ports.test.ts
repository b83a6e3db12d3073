import { randomUUID } from 'node:crypto';
import { beforeAll } from 'vitest';
import { openFolderStorage } from '../../support/folder-storage.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { openFolder } from '../../support/result-folder/result-folder.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import {
  createS3Fixture,
  createS3ResultFixture,
  openBucketListing,
} from '../../support/s3/s3-bucket.ts';
import { createS3WriterFixture } from '../../support/s3/s3-original-writer.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOrigin } from './origin.contract.ts';
import { describeOriginListing } from './origin-listing.contract.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';
import { describeResultStore } from './result-store.contract.ts';

const close = async () => undefined;

/** One that checks signatures, and one that cannot check those of requests to the bucket itself. */
let strict: LocalS3;
let lenient: LocalS3;
beforeAll(async () => {
  strict = await startLocalS3();
  lenient = await startLocalS3({ allowMismatchedSignatures: true });
  return () => Promise.all([strict.close(), lenient.close()]);
});

describeOrigin('memory', async () => {
  const origin = new MemoryOrigin();
  return {
    origin,
    put: async (key, bytes) => origin.put(key, bytes, new Date()),
    close,
  };
});
describeOrigin('filesystem', async () => {
  const { path, put, remove } = await makeTemporaryFolder();
  const { origin } = await openFolderStorage(path);
  return { origin, put, close: remove };
});
describeOrigin('s3', async () => createS3Fixture(strict));

describeOriginListing('filesystem', async () => {
  const { path, put, remove } = await makeTemporaryFolder();
  return { listing: (await openFolderStorage(path)).listing, put, close: remove };
});
describeOriginListing('s3', async () => {
  const prefix = `${randomUUID()}/`;
  const listing = openBucketListing(lenient, prefix);
  return { listing, put: (key, bytes) => lenient.put(prefix + key, bytes), close };
});

describeOriginalWriter('the filesystem writer', async () => {
  const { path, list, remove } = await makeTemporaryFolder();
  return { ...(await openFolderStorage(path)), list, close: remove };
});
// The server knows no AbortMultipartUpload; that parts are removed is shown on Ceph (`npm run test:s3`).
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3WriterFixture(lenient),
  keepsParts: true,
  ignoresConditions: true,
}));

describeResultStore('memory', async () => ({ store: new MemoryResultStore(), close }));
describeResultStore('a folder', async () => {
  const { path, remove } = await makeTemporaryFolder();
  return { store: await openFolder({ folder: path, maxBytes: 100_000_000 }), close: remove };
});
describeResultStore('s3', async () => createS3ResultFixture(lenient));
