import { randomUUID } from 'node:crypto';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DirectoryObjects, openDirectoryStorage } from '../../support/directory-storage.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { openDirectoryStore } from '../../support/result-directory/result-directory.ts';
import { useLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3Fixture, openBucketListing, openBucketStore } from '../../support/s3/s3-bucket.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { describeOrigin } from './origin.contract.ts';
import { describeOriginListing } from './origin-listing.contract.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';
import { describeResultStore } from './result-store.contract.ts';
import { describeSharedObjects } from './shared-objects.contract.ts';

/** The second server cannot check signatures of requests to the bucket itself. */
const strict = await useLocalS3();
const lenient = await useLocalS3({ allowMismatchedSignatures: true });

describeOrigin('memory', async () => {
  const origin = new MemoryOrigin();
  return {
    origin,
    put: async (key, bytes) => origin.put(key, bytes, new Date()),
  };
});
describeOrigin('filesystem', async () => {
  const { path, put } = await useTemporaryDirectory();
  const { origin } = await openDirectoryStorage(path);
  return { origin, put };
});
describeOrigin('s3', async () => createS3Fixture(strict));

describeOriginListing('filesystem', async () => {
  const { path, put } = await useTemporaryDirectory();
  return { listing: (await openDirectoryStorage(path)).listing, put };
});
describeOriginListing('s3', async () => {
  const prefix = `${randomUUID()}/`;
  const listing = openBucketListing(lenient, prefix);
  return { listing, put: (key, bytes) => lenient.put(prefix + key, bytes) };
});

describeOriginalWriter('the filesystem writer', async () => {
  const { path, list } = await useTemporaryDirectory();
  return { ...(await openDirectoryStorage(path)), list };
});
// The server does not support AbortMultipartUpload; tests on Ceph (`npm run test:s3`) show that parts are removed.
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3Fixture(lenient),
  keepsParts: true,
  ignoresConditions: true,
}));

describeResultStore('memory', async () => new MemoryResultStore());
describeResultStore('a directory', async () => {
  const { path } = await useTemporaryDirectory();
  return openDirectoryStore({ directory: path, maxBytes: 100_000_000 });
});
describeResultStore('s3', async () => openBucketStore(lenient));

describeSharedObjects('a directory', async () => {
  return DirectoryObjects.open(join((await useTemporaryDirectory()).path, 'blocks.jsonl'));
});
test('a writer of a shared object waits at most five seconds for the claim of a killed process', async () => {
  const { path, list } = await useTemporaryDirectory();
  const file = join(path, 'blocks.jsonl');
  const objects = await DirectoryObjects.open(file);
  const tag = (await objects.write('', Buffer.from('one'), 'absent')) ?? '';
  const claim = `${file}.next-${tag}`;
  const write = (text: string) => objects.write('', Buffer.from(text), { tag });
  await writeFile(claim, 'two');
  expect(await write('three')).toBeUndefined();
  const longAgo = new Date(Date.now() - 6_000);
  await utimes(claim, longAgo, longAgo);
  expect(await write('three')).toBeUndefined();
  expect(await write('three')).toEqual(expect.any(String));
  expect(await list()).toEqual(['blocks.jsonl']);
});
