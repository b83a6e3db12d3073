import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';

// Test files share their modules; these are loaded anew, to be given the mocks below.
vi.resetModules();
const { StoreStalled } = await import('../../../src/pipeline/ports.ts');
const { createDiskCache } = await import('../../../src/storage/disk-cache/disk-cache.ts');
afterAll(() => vi.resetModules());

/** A disk that hangs in its removals, where a test wants it to; no real one does on demand. */
const disk = vi.hoisted(() => ({ unlinks: 0, hangs: undefined as Promise<void> | undefined }));
vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs/promises')>();
  const unlink: typeof real.unlink = async (path) => {
    disk.unlinks += 1;
    await disk.hangs;
    return real.unlink(path);
  };
  return { ...real, unlink };
});

/** Name of the n-th rendering of an original. */
const nameOf = (id: number): string => `${id.toString(16).padStart(16, '0')}-${'0'.repeat(16)}`;

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await useTemporaryFolder();
  disk.unlinks = 0;
  disk.hangs = undefined;
});

const open = (stallTimeoutMs: number) =>
  createDiskCache({
    folder: folder.path,
    maxBytes: 1_000_000_000,
    log: new RecordedLog(),
    stallTimeoutMs,
  });

const put = (path: string) => folder.put(`results/${path}`, 'x');

describe('a removal from a folder', () => {
  test('is given up where the disk hangs, and none follows before it has come back', async () => {
    const store = await open(500);
    for (const original of ['avatars/1/ab', 'icons/1/ab']) await put(`${original}/${nameOf(1)}`);
    await put(`avatars/1/ab/${nameOf(2)}`);
    const back = defer<void>();
    disk.hangs = back.promise;
    await expect(store.remove('avatars/1/')).rejects.toThrow(
      new StoreStalled('The disk has not answered for 500 ms.'),
    );
    await expect(store.remove('icons/1/')).rejects.toThrow(
      new StoreStalled('The disk still does not answer.'),
    );
    expect(disk.unlinks).toBe(1);
    disk.hangs = undefined;
    back.resolve();
    // What was given up does not go on.
    await expect.poll(() => readdirSync(join(folder.path, 'results/avatars/1/ab')).length).toBe(1);
    await expect.poll(() => store.remove('icons/1/').catch(() => 0)).toBe(1);
    expect(await store.remove('avatars/1/')).toBe(1);
    store.close();
  });

  test('that takes longer than that, but goes on, is not given up', async () => {
    const store = await open(1_000);
    for (let id = 0; id < 10; id += 1) await put(`avatars/1/ab/${nameOf(id)}`);
    const slow = (): void => {
      disk.hangs = new Promise((resolve) => {
        setTimeout(() => {
          slow();
          resolve();
        }, 150);
      });
    };
    slow();
    expect(await store.remove('avatars/1/')).toBe(10);
    store.close();
    disk.hangs = undefined;
  });
});
