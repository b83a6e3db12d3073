import { randomUUID } from 'node:crypto';
import { beforeAll } from 'vitest';
import { openFolderStorage } from '../../support/folder-storage.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { openBucketListing } from '../../support/s3/s3-bucket.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOriginListing } from './origin-listing.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
  return server.close;
});

describeOriginListing('filesystem', async () => {
  const folder = await makeTemporaryFolder();
  const { listing } = await openFolderStorage(folder.path);
  return { listing, put: folder.put, close: folder.remove };
});

describeOriginListing('s3', async () => {
  const prefix = `${randomUUID()}/`;
  return {
    listing: openBucketListing(server, prefix),
    put: (key, bytes) => server.put(prefix + key, bytes),
    close: async () => undefined,
  };
});
