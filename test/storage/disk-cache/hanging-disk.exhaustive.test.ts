import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createDiskCache } from '../../../src/storage/disk-cache/disk-cache.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { walkFolder } from '../../../src/storage/filesystem/folder-walk.ts';
import { openScannedCache } from '../../support/disk-cache/disk-cache.ts';
import { type FaultyDisk, mountFaultyDisk } from '../../support/processes/faulty-disk.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, anySize } from '../contracts/result-store.contract.ts';

/** Of a reader that stays. */
const staying = (): AbortSignal => new AbortController().signal;
const numbered = (number: number) => addressOf({ originKey: `avatars/1/${number}` });
const numbers = Array.from({ length: 16 }, (_, number) => number);
const result = { body: Buffer.alloc(10_000, 7), mimeType: 'image/webp' };

let folder: TemporaryFolder;
let disk: FaultyDisk | undefined;
beforeEach(async () => {
  folder = await useTemporaryFolder();
  for (const name of ['disk/renderings', 'mounted'])
    await mkdir(join(folder.path, name), { recursive: true });
  disk = await mountFaultyDisk(join(folder.path, 'mounted'), join(folder.path, 'disk'));
  onTestFinished(() => disk?.close());
});

test('renderings on a disk that hangs leave threads for the originals on another one', async ({
  skip,
}) => {
  if (disk === undefined) return skip('FUSE is missing: /dev/fuse, fuse3, python3-fusepy');
  await folder.put('originals/avatars/1/a', 'original');
  const origin = await createFilesystemOrigin(join(folder.path, 'originals'));
  const store = await openScannedCache({
    folder: join(folder.path, 'mounted/renderings/store'),
    maxBytes: 1e9,
  });
  for (const number of numbers) await store.write(numbered(number), result);
  await disk.tell('renderings', 'hang');
  const pending = numbers.map(async (number) => {
    // That order, so that writes are under way, too.
    const written = store.write(numbered(100 + number), result);
    return [await store.read(numbered(number), staying(), anySize), await written];
  });
  const original = await origin.readForMemory('avatars/1/a', { signal: staying() });
  expect(original).toMatchObject({ bytes: Buffer.from('original') });
  await disk.tell('renderings', 'none');
  for (const [read] of await Promise.all(pending)) expect(read?.body).toEqual(result.body);
  expect(await store.read(numbered(107), staying(), anySize)).toEqual(result);
  store.close();
}, 60_000);

test('evictions and purges on a disk that hangs leave a thread for the originals on another one', async ({
  skip,
}) => {
  if (disk === undefined) return skip('FUSE is missing: /dev/fuse, fuse3, python3-fusepy');
  await folder.put('originals/avatars/1/a', 'original');
  const origin = await createFilesystemOrigin(join(folder.path, 'originals'));
  const store = await openScannedCache({
    folder: join(folder.path, 'mounted/renderings/store'),
    maxBytes: 240_000,
  });
  for (const number of numbers) await store.write(numbered(number), result);
  expect(store.usage()?.evictions).toBeGreaterThan(0);
  await disk.tell('renderings', 'hang');
  const pending = numbers.flatMap((number) => [
    store.write(numbered(100 + number), result),
    store.remove('icons/'),
  ]);
  const original = await origin.readForMemory('avatars/1/a', { signal: staying() });
  expect(original).toMatchObject({ bytes: Buffer.from('original') });
  await disk.tell('renderings', 'none');
  await Promise.all(pending);
  store.close();
}, 60_000);

test('a scan, reads and purges on a disk that hangs leave a thread for the originals on another one', async ({
  skip,
}) => {
  if (disk === undefined) return skip('FUSE is missing: /dev/fuse, fuse3, python3-fusepy');
  await folder.put('originals/avatars/1/a', 'original');
  const origin = await createFilesystemOrigin(join(folder.path, 'originals'));
  const options = {
    ...{ folder: join(folder.path, 'mounted/renderings/store'), maxBytes: 1e9 },
    log: new RecordedLog(),
  };
  const earlier = await openScannedCache(options);
  for (const number of numbers) await earlier.write(numbered(number), result);
  earlier.close();
  await disk.tell('renderings', 'delay 0.1');
  const store = await createDiskCache(options);
  await disk.tell('renderings', 'hang');
  expect(store.usage()).toBeUndefined(); // the scan is not over
  const pending = numbers.map((number) => store.read(numbered(number), staying(), anySize));
  const purging = store.remove('icons/');
  const original = await origin.readForMemory('avatars/1/a', { signal: staying() });
  expect(original).toMatchObject({ bytes: Buffer.from('original') });
  await disk.tell('renderings', 'none');
  for (const read of await Promise.all(pending)) expect(read?.body).toEqual(result.body);
  expect(await purging).toBe(0);
  store.close();
}, 60_000);

// FUSE does not say what an entry is, as some of NFS do not.
test('files on a slow disk are listed without keeping others waiting', async ({ skip }) => {
  if (disk === undefined) return skip('FUSE is missing: /dev/fuse, fuse3, python3-fusepy');
  for (const number of numbers) await folder.put(`disk/renderings/${number}`, 'original');
  await disk.tell('renderings', 'delay 0.2');
  const delays = monitorEventLoopDelay();
  delays.enable();
  let files = 0;
  for await (const _ of walkFolder(join(folder.path, 'mounted/renderings'))) files += 1;
  delays.disable();
  expect(files).toBe(numbers.length);
  expect(delays.max / 1e9, 'seconds that the event loop stood still').toBeLessThan(1);
}, 60_000);

test('what a disk that fails in mid-write has kept is removed when it is well again', async ({
  skip,
}) => {
  if (disk === undefined) return skip('FUSE is missing: /dev/fuse, fuse3, python3-fusepy');
  const store = await openScannedCache({
    folder: join(folder.path, 'mounted/renderings/store'),
    maxBytes: 1e9,
  });
  const listTemporary = () => readdirSync(join(folder.path, 'disk/renderings/store/incoming'));
  await disk.tell('renderings', 'delay 1');
  const failing = expect(store.write(numbered(1), result)).rejects.toMatchObject({
    cause: { code: 'EIO' },
  });
  await expect.poll(listTemporary, { timeout: 20_000, interval: 5 }).toHaveLength(1);
  await disk.tell('renderings', 'fail');
  await failing;
  expect(listTemporary()).toHaveLength(1);
  await disk.tell('renderings', 'none');
  await store.write(numbered(2), result);
  expect(listTemporary()).toEqual([]);
  store.close();
}, 60_000);
