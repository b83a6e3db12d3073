import { rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ResultAddress } from '../../../src/pipeline/ports.ts';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import { createDiskCache, type DiskCache } from '../../../src/storage/disk-cache/disk-cache.ts';
import { fileCostBytes } from '../../../src/storage/disk-cache/file-index.ts';
import { formatResultFile } from '../../../src/storage/result-file.ts';
import { openScannedCache, untilScanned, usedBytes } from '../../support/disk-cache/disk-cache.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, anySize } from '../contracts/result-store.contract.ts';

const HOUR_MS = 3_600_000;
const MAX_BYTES = 600_000;
const { signal } = new AbortController();
/** Takes four blocks of the disk, with the folder of its original. */
const result = { body: Buffer.alloc(12_000, 'x'), mimeType: 'image/webp' };
const COST_BYTES = 4 * 4096;

let temporary: TemporaryFolder;
let folder: string;
beforeEach(async () => {
  temporary = await useTemporaryFolder();
  folder = temporary.path;
});

async function open(maxBytes = MAX_BYTES): Promise<DiskCache> {
  const cache = await openScannedCache({ folder, maxBytes });
  onTestFinished(() => cache.close());
  return cache;
}

const numbered = (number: number): ResultAddress => addressOf({ originKey: `avatars/1/${number}` });
const pathOf = (address: ResultAddress): string => join(folder, 'results', resultPath(address));
const isThere = async (cache: DiskCache, number: number): Promise<boolean> =>
  (await cache.read(numbered(number), signal, anySize)) !== undefined;

/** Which files there are; to read them would be to use them. */
async function keptNumbers(count: number): Promise<number[]> {
  const found = await Promise.allSettled(upTo(count).map((at) => stat(pathOf(numbered(at)))));
  return upTo(count).filter((at) => found[at]?.status === 'fulfilled');
}

/** Fills the folder with renderings of which number 0 was used last, and each next an hour before. */
async function fill(count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const address = numbered(number);
    const file = Buffer.concat(formatResultFile(address, result) ?? []);
    await temporary.put(`results/${resultPath(address)}`, file);
    const at = new Date(Date.now() - number * HOUR_MS);
    await utimes(pathOf(address), at, at);
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

describe('the bound of the folder', () => {
  test('holds at all times under writes without end, which all find room', async () => {
    const cache = await open();
    let most = 0;
    for (let number = 0; number < 80; number += 1) {
      await cache.write(numbered(number), result);
      if (number % 5 === 0) most = Math.max(most, await usedBytes(folder));
      expect(await isThere(cache, number)).toBe(true);
    }
    expect(most).toBeLessThanOrEqual(MAX_BYTES);
    expect(most).toBeGreaterThan(0.9 * MAX_BYTES);
    expect(cache.usage()).toMatchObject({
      heldBytes: await usedBytes(folder),
      maxBytes: MAX_BYTES,
    });
  });

  test('holds under writes and removals all at once, and the sum stays what is there', async () => {
    const cache = await open();
    let isOver = false;
    const watch = (async () => {
      let most = 0;
      for (; !isOver; await nextTurn()) most = Math.max(most, cache.usage()?.heldBytes ?? 0);
      return most;
    })();
    const writeEach = async (first: number): Promise<void> => {
      for (let number = first; number < 160; number += 4) {
        await cache.write(numbered(number), result);
        if (number % 25 === 0) await cache.remove(`avatars/1/${number / 25}`);
      }
    };
    await Promise.all(upTo(4).map(writeEach));
    isOver = true;
    expect(await watch).toBeLessThanOrEqual(MAX_BYTES);
    expect(cache.usage()?.heldBytes).toBe(await usedBytes(folder));
    expect(cache.usage()?.evictions).toBeGreaterThan(50);
  });

  test('costs those that were not used for longest', async () => {
    const cache = await open();
    // Each needs three blocks, and might need three folders, of which two are there.
    const room = 1 + Math.floor((MAX_BYTES - 8 * 4096) / COST_BYTES);
    for (const number of upTo(room)) await cache.write(numbered(number), result);
    expect(cache.usage()?.evictions).toBe(0);
    for (const number of [0, 2]) expect(await isThere(cache, number)).toBe(true);
    for (let number = room; number < room + 10; number += 1) {
      await cache.write(numbered(number), result);
    }
    const gone = upTo(room).filter((number) => ![0, 2].includes(number));
    const { evictions = 0 } = cache.usage() ?? {};
    expect(evictions).toBeGreaterThanOrEqual(9);
    const kept = await keptNumbers(room);
    expect(upTo(room).filter((number) => !kept.includes(number))).toEqual(gone.slice(0, evictions));
  });

  test('is restored at the start, the least recently used first, to an hour', async () => {
    await fill(80);
    expect(await usedBytes(folder)).toBeGreaterThan(2 * MAX_BYTES);
    const cache = await open();
    const used = await usedBytes(folder);
    expect(used).toBeLessThanOrEqual(MAX_BYTES);
    expect(used).toBeGreaterThan(MAX_BYTES - 2 * COST_BYTES);
    expect(cache.usage()).toEqual({
      heldBytes: used,
      maxBytes: MAX_BYTES,
      evictions: 80 - (await keptNumbers(80)).length,
    });
    const kept = await keptNumbers(80);
    expect(kept).toEqual(upTo(kept.length));
    // What comes next costs the next in line.
    await cache.write(numbered(1_000), result);
    expect(await isThere(cache, kept.length - 1)).toBe(false);
    expect(await isThere(cache, 0)).toBe(true);
  });

  test('leaves no empty folder, all the way up', async () => {
    const cache = await open();
    await cache.write(addressOf({ originKey: 'banners/7/ab' }), result);
    for (const number of upTo(60)) await cache.write(numbered(number), result);
    await expect(stat(join(folder, 'results/banners'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('is no reason to keep what has none', async () => {
    const cache = await open(20_000 + 8 * 4096);
    await cache.write(numbered(1), { ...result, body: Buffer.alloc(1) });
    await cache.write(numbered(2), { ...result, body: Buffer.alloc(30_000) });
    expect(await keptNumbers(3)).toEqual([1]);
  });
});

describe('the scan', () => {
  test('ends when the store is closed, without a word', async () => {
    await fill(100);
    const log = new RecordedLog();
    const cache = await createDiskCache({ folder, maxBytes: 10_000_000, log });
    cache.close();
    await open(10_000_000);
    expect(log.entries).toEqual([]);
    expect(await keptNumbers(100)).toHaveLength(100);
  });

  test('takes a turn of the event loop for every file, and logs what it found', async () => {
    await fill(60);
    const log = new RecordedLog();
    const cache = await createDiskCache({ folder, maxBytes: MAX_BYTES, log });
    onTestFinished(() => cache.close());
    let turns = 0;
    for (; cache.usage() === undefined; turns += 1) await nextTurn();
    expect(turns).toBeGreaterThan(60);
    const { evictions: evicted, heldBytes } = cache.usage() ?? {};
    const durationMs = expect.any(Number);
    expect(log.entries).toEqual([
      {
        level: 'info',
        message: 'result store scanned',
        details: { files: 60, evicted, heldBytes, durationMs },
      },
    ]);
  });

  test('heals what was removed behind its back', async () => {
    await fill(30);
    const cache = await open();
    await rm(join(folder, 'results/avatars'), { recursive: true });
    expect(await isThere(cache, 1)).toBe(false);
    for (const number of upTo(50)) await cache.write(numbered(1_000 + number), result);
    expect(await usedBytes(folder)).toBeLessThanOrEqual(MAX_BYTES);
    expect(await isThere(cache, 1_049)).toBe(true);
  });
});

test('a file costs no less than the disk gives it', async () => {
  const cache = await open();
  await untilScanned(cache);
  await cache.write(numbered(1), result);
  const { size, blocks } = await stat(pathOf(numbered(1)));
  expect(fileCostBytes(size)).toBeGreaterThanOrEqual(512 * blocks);
});
