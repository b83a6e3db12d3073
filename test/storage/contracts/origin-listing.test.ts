import { randomUUID } from 'node:crypto';
import { beforeAll } from 'vitest';
import { createFilesystemListing } from '../../../src/storage/filesystem/filesystem-listing.ts';
import { S3Listing } from '../../../src/storage/s3/s3-listing.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { s3Options } from '../../support/s3/s3-bucket.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOriginListing } from './origin-listing.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
  return server.close;
});

describeOriginListing('filesystem', async () => {
  const folder = await makeTemporaryFolder();
  return {
    listing: await createFilesystemListing(folder.path),
    put: folder.put,
    close: folder.remove,
  };
});

describeOriginListing('s3', async () => {
  const prefix = `${randomUUID()}/`;
  return {
    listing: new S3Listing(s3Options(server, { prefix })),
    put: (key, bytes) => server.put(prefix + key, bytes),
    close: async () => undefined,
  };
});
