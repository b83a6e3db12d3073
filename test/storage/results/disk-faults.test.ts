import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { readdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { beforeEach, describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { openDirectoryStorage } from '../../support/directory-storage.ts';
import { signal } from '../../support/open-stream.ts';
import { type FaultyDisk, mountFaultyDisk } from '../../support/processes/faulty-disk.ts';
import { openSweptStore } from '../../support/result-directory/result-directory.ts';
import { storedPath } from '../../support/stored-path.ts';
import {
  type TemporaryDirectory,
  useTemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { list } from '../contracts/origin-listing.contract.ts';
import { addressOf, ignoreSize } from '../contracts/result-store.contract.ts';

const numbered = (number: number) => addressOf({ originKey: `avatars/1/${number}` });
const numbers = Array.from({ length: 16 }, (_, number) => number);
const resultOf = (number: number, length = 30_000) => ({
  body: Buffer.alloc(length, number),
  mimeType: 'image/webp',
});
const expectWhole = async (store: ResultStore, number: number): Promise<void> => {
  const result = await store.read(numbered(number), signal, ignoreSize);
  expect(Buffer.alloc(30_000, number).equals(result?.body ?? Buffer.of())).toBe(true);
};

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await useTemporaryDirectory();
});

/** Options of `mount` for small file systems, which need root. */
const disks = {
  '1 MiB': () => ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs'],
  'few inodes': () => ['-t', 'tmpfs', '-o', 'nr_inodes=60', 'tmpfs'],
  'few inodes (ext4)': () => {
    const image = join(directory.path, 'image');
    writeFileSync(image, '');
    truncateSync(image, 16 * 1024 ** 2);
    execFileSync('mkfs.ext4', ['-q', '-N', '80', image], { stdio: 'ignore' });
    return ['-o', 'loop', image];
  },
} as const;

describe('a small disk below the result store', () => {
  async function openOn(disk: keyof typeof disks, { skip }: Pick<TestContext, 'skip'>) {
    const path = join(directory.path, 'store');
    mkdirSync(path);
    try {
      execFileSync('mount', [...disks[disk](), path], { stdio: 'ignore' });
    } catch {
      return skip('takes root, to mount it');
    }
    onTestFinished(() => void execFileSync('umount', ['--lazy', path]));
    return { path, store: await openStoreOf(path) };
  }

  test.for([
    ['1 MiB', 30_000],
    ['few inodes', 100],
    ['few inodes (ext4)', 100],
  ] as const)(
    'of %s, once full, fails a write with the reason, and then evicts the least recently used',
    async ([disk, length], context) => {
      const { path, store } = await openOn(disk, context);
      const write = (number: number) =>
        store.write(numbered(number), resultOf(number % 256, length));
      const find = (number: number) => store.read(numbered(number), signal, ignoreSize);
      let count = 0;
      const fill = async () => {
        for (; ; count += 1) {
          await write(count);
          await utimes(join(path, 'results', storedPath(numbered(count))), 0, count * 3_600);
        }
      };
      const failure = await fill().catch((error: unknown) => error);
      const message = expect.stringContaining(storedPath(numbered(count)));
      expect(failure).toMatchObject({ message, cause: { code: 'ENOSPC' } });
      expect(count).toBeGreaterThan(20);
      expect(await readdir(join(path, 'incoming'))).toEqual([]);
      const isWritten = (number: number) =>
        write(number).then(
          () => true,
          () => false,
        );
      for (let number = count; number < 3 * count; number += 1) {
        await expect.poll(() => isWritten(number)).toBe(true);
      }
      expect(await find(3 * count - 1)).toMatchObject(resultOf((3 * count - 1) % 256, length));
      expect(await find(0)).toBeUndefined();
      // A sweep frees space, but does not empty the store.
      expect(store.usage()?.evictions).toBeGreaterThan(count);
      expect((await readdir(join(path, 'results/avatars/1'))).length).toBeGreaterThan(count / 2);
    },
  );

  test('that is read-only serves existing renderings, and reports why it does not write', async (context) => {
    const { path, store } = await openOn('1 MiB', context);
    await store.write(numbered(1), resultOf(1));
    const file = join(path, 'results', storedPath(numbered(1)));
    await utimes(file, new Date(0), new Date(0));
    execFileSync('mount', ['-o', 'remount,ro', path]);
    await expectWhole(store, 1);
    expect((await stat(file)).mtimeMs).toBe(0);
    for (const change of [store.write(numbered(2), resultOf(2)), store.remove('avatars/')])
      await expect(change).rejects.toMatchObject({ cause: { code: 'EROFS' } });
  });
});

describe('a faulty disk (FUSE)', () => {
  let disk: FaultyDisk;
  let path: string;
  beforeEach(async ({ skip }) => {
    await directory.put('originals/avatars/1/a', 'original');
    for (const name of ['disk/renderings', 'mounted'])
      mkdirSync(join(directory.path, name), { recursive: true });
    path = join(directory.path, 'mounted/renderings/store');
    const mounted = await mountFaultyDisk(
      join(directory.path, 'mounted'),
      join(directory.path, 'disk'),
    );
    if (mounted === undefined) return skip('takes /dev/fuse, fuse3 and python3-fusepy');
    disk = mounted;
    onTestFinished(disk.close);
  });

  const expectOriginal = async (): Promise<void> => {
    const { origin } = await openDirectoryStorage(join(directory.path, 'originals'));
    const original = await origin.open('avatars/1/a', { signal, isBuffered: true });
    expect(original).toMatchObject({ body: Buffer.from('original') });
  };

  test('that hangs during a sweep, reads, writes and purges leaves a thread to read originals from another disk', {
    timeout: 60_000,
  }, async () => {
    const store = await openStoreOf(path);
    for (const number of numbers) await store.write(numbered(number), resultOf(number));
    await disk.setFault('renderings', 'delay 0.03');
    const sweep = store.sweep();
    await disk.setFault('renderings', 'hang');
    const pending = numbers.flatMap((number) => [
      // In this order, so that writes run, too.
      store.write(numbered(100 + number), resultOf(100 + number)),
      expectWhole(store, number),
      store.remove('icons/'),
    ]);
    await expectOriginal();
    await disk.setFault('renderings', 'none');
    await Promise.all(pending);
    await expectWhole(store, 107);
    await sweep;
    expect(store.usage()?.heldBytes).toBeGreaterThan(numbers.length * 32_768);
  });

  /** Writes renderings of an original without the store. */
  const put = async (original: string, count: number): Promise<void> => {
    for (let id = 0; id < count; id += 1) {
      const name = `${id.toString(16).padStart(16, '0')}-${'0'.repeat(16)}`;
      await directory.put(`disk/renderings/store/results/${original}/${name}`, 'x');
    }
  };
  const left = (original: string): number =>
    readdirSync(join(directory.path, 'disk/renderings/store/results', original)).length;

  test('that hangs in a removal makes this and later removals time out, and leaves a thread to read originals', async () => {
    const store = await openStoreOf(path, 500);
    await put('avatars/1/ab', 2);
    await put('icons/1/ab', 1);
    await disk.setFault('renderings', 'hang');
    await expect(store.remove('avatars/1/')).rejects.toMatchObject({
      name: 'TimeoutError',
      message: 'The disk has not responded for 500 ms.',
    });
    const others = Array.from({ length: 4 }, () =>
      expect(store.remove('icons/1/')).rejects.toMatchObject({ name: 'TimeoutError' }),
    );
    await Promise.all(others);
    await expectOriginal();
    await disk.setFault('renderings', 'none');
    await expect.poll(() => store.remove('icons/1/').catch(() => 0)).toBe(1);
    // The abandoned removal does not continue in the background.
    expect(left('avatars/1/ab')).toBeGreaterThan(0);
    expect(await store.remove('avatars/1/')).toBeGreaterThan(0);
  });

  test('that is slow, but makes progress, completes a removal beyond the stall timeout', async () => {
    const store = await openStoreOf(path, 1_000);
    await put('avatars/1/ab', 4);
    await disk.setFault('renderings', 'delay 0.02');
    const beganMs = performance.now();
    expect(await store.remove('avatars/1/')).toBe(4);
    expect(performance.now() - beganMs).toBeGreaterThan(1_000);
  });

  // FUSE does not report the type of an entry, like some NFS.
  test('that is slow is listed without blocking the event loop', async () => {
    for (const number of numbers.slice(0, 4))
      await directory.put(`disk/renderings/avatars/${number}`, 'original');
    const { listing } = await openDirectoryStorage(join(directory.path, 'mounted/renderings'));
    await disk.setFault('renderings', 'delay 0.1');
    const delays = monitorEventLoopDelay();
    delays.enable();
    const listed = await list(listing, 'avatars/');
    delays.disable();
    expect(listed).toHaveLength(4);
    expect(delays.max / 1e9, 'seconds that the event loop stood still').toBeLessThan(1);
  });
});

const openStoreOf = (path: string, stallTimeoutMs = 10_000) =>
  openSweptStore({ directory: path, maxBytes: 1e9, stallTimeoutMs });
