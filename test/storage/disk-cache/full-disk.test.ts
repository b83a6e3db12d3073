import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import type { DiskCache } from '../../../src/storage/disk-cache/disk-cache.ts';
import { openScannedCache } from '../../support/disk-cache/disk-cache.ts';
import { addressOf, anySize } from '../contracts/result-store.contract.ts';

/** A disk of 1 MiB in memory; mounting one takes root, so these tests are skipped for others. */
const disk = mkdtempSync(join(tmpdir(), 'darkroom-disk-'));
const isMounted = mount('size=1m');
afterAll(() => {
  if (isMounted) execFileSync('umount', [disk]);
  rmdirSync(disk);
});

function mount(options: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const { signal } = new AbortController();
const numbered = (number: number) => addressOf({ originKey: `avatars/1/${number}` });
const resultOf = (number: number, length = 30_000) => ({
  body: Buffer.alloc(length, number),
  mimeType: 'image/webp',
});

describe.skipIf(!isMounted)('a store on a disk', () => {
  const folder = join(disk, 'store');
  let store: DiskCache;
  beforeEach(async () => {
    store = await openScannedCache({ folder, maxBytes: 1e9 });
  });
  afterEach(async () => {
    store.close();
    await rm(folder, { recursive: true, maxRetries: 3 });
  });

  const isWhole = async (number: number): Promise<boolean> => {
    const result = await store.read(numbered(number), signal, anySize);
    return Buffer.alloc(30_000, number).equals(result?.body ?? Buffer.of());
  };

  test('that is full fails with the reason, and keeps what is there', async () => {
    let count = 0;
    let failure: unknown;
    for (; failure === undefined; count += 1) {
      await store.write(numbered(count), resultOf(count)).catch((error: unknown) => {
        failure = error;
      });
    }
    count -= 1;
    expect(failure).toMatchObject({
      message: expect.stringContaining(resultPath(numbered(count))),
      cause: { code: 'ENOSPC' },
    });
    expect(count).toBeGreaterThan(20);
    expect(await readdir(join(folder, 'incoming'))).toEqual([]);

    const again = store.write(numbered(0), resultOf(0, 60_000));
    await expect(again).rejects.toMatchObject({ cause: { code: 'ENOSPC' } });
    for (let number = 0; number < count; number += 1) expect(await isWhole(number)).toBe(true);

    expect(await store.remove('avatars/1/0/')).toBe(1);
    await store.write(numbered(count), resultOf(count));
    expect(await isWhole(count)).toBe(true);
  });

  test('that may only be read serves what is there, and says why it does not write', async () => {
    await store.write(numbered(1), resultOf(1));
    const path = join(folder, 'results', resultPath(numbered(1)));
    await utimes(path, new Date(0), new Date(0));
    execFileSync('mount', ['-o', 'remount,ro', disk]);
    try {
      expect(await isWhole(1)).toBe(true);
      expect((await stat(path)).mtimeMs).toBe(0);
      const write = store.write(numbered(2), resultOf(2));
      await expect(write).rejects.toMatchObject({ cause: { code: 'EROFS' } });
      const removal = store.remove('avatars/');
      await expect(removal).rejects.toMatchObject({ cause: { code: 'EROFS' } });
    } finally {
      execFileSync('mount', ['-o', 'remount,rw', disk]);
    }
  });
});
