import { randomUUID } from 'node:crypto';
import { link, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FolderObjects, openFolderStorage } from '../../support/folder-storage.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { openFolder } from '../../support/result-folder/result-folder.ts';
import { useLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3Fixture, openBucketListing, openBucketStore } from '../../support/s3/s3-bucket.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOrigin } from './origin.contract.ts';
import { describeOriginListing } from './origin-listing.contract.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';
import { describeResultStore } from './result-store.contract.ts';
import { describeSharedObjects } from './shared-objects.contract.ts';

/** One that checks signatures, and one that cannot check those of requests to the bucket itself. */
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
  const { path, put } = await useTemporaryFolder();
  const { origin } = await openFolderStorage(path);
  return { origin, put };
});
describeOrigin('s3', async () => createS3Fixture(strict));

describeOriginListing('filesystem', async () => {
  const { path, put } = await useTemporaryFolder();
  return { listing: (await openFolderStorage(path)).listing, put };
});
describeOriginListing('s3', async () => {
  const prefix = `${randomUUID()}/`;
  const listing = openBucketListing(lenient, prefix);
  return { listing, put: (key, bytes) => lenient.put(prefix + key, bytes) };
});

describeOriginalWriter('the filesystem writer', async () => {
  const { path, list } = await useTemporaryFolder();
  return { ...(await openFolderStorage(path)), list };
});
// The server knows no AbortMultipartUpload; that parts are removed is shown on Ceph (`npm run test:s3`).
describeOriginalWriter('the S3 writer', async () => ({
  ...createS3Fixture(lenient),
  keepsParts: true,
  ignoresConditions: true,
}));

describeResultStore('memory', async () => new MemoryResultStore());
describeResultStore('a folder', async () => {
  const { path } = await useTemporaryFolder();
  return openFolder({ folder: path, maxBytes: 100_000_000 });
});
describeResultStore('s3', async () => openBucketStore(lenient));

describeSharedObjects('a folder', async () => {
  return FolderObjects.open(join((await useTemporaryFolder()).path, 'blocks.jsonl'));
});
test('the next writer of a shared object completes what a killed process had begun', async () => {
  const { path } = await useTemporaryFolder();
  const file = join(path, 'blocks.jsonl');
  const objects = await FolderObjects.open(file);
  const tag = (await objects.write('', Buffer.from('one'), 'absent')) ?? '';
  await writeFile(join(path, 'claimed'), 'two');
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(join(path, 'claimed'), longAgo, longAgo);
  await link(join(path, 'claimed'), `${file}.next-${tag}`);
  expect(await objects.write('', Buffer.from('three'), { tag })).toBeUndefined();
  const found = await objects.read('');
  expect(Buffer.from(found?.bytes ?? []).toString()).toBe('two');
  expect(await objects.list('')).toEqual([]);
  expect(await objects.write('', Buffer.from('three'), { tag: found?.tag ?? '' })).toEqual(
    expect.any(String),
  );
});
