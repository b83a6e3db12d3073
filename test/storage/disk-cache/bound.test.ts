import { rm, stat, truncate, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ResultAddress, ResultStore } from '../../../src/pipeline/ports.ts';
import {
  openCache,
  openScannedCache,
  readText,
  untilScanned,
  usedBytes,
} from '../../support/disk-cache/disk-cache.ts';
import { storedPath } from '../../support/stored-path.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, resultOf } from '../contracts/result-store.contract.ts';

const HOUR_MS = 3_600_000;
const MAX_BYTES = 600_000;
/** Takes four blocks of the disk, with the folder of its original. */
const result = resultOf('x'.repeat(12_000));
const COST_BYTES = 4 * 4096;

let folder: string;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
});

async function open(maxBytes = MAX_BYTES) {
  const cache = await openScannedCache({ folder, maxBytes });
  onTestFinished(() => cache.close());
  return cache;
}

const numbered = (number: number): ResultAddress => addressOf({ originKey: `avatars/1/${number}` });
const pathOf = (address: ResultAddress): string => join(folder, 'results', storedPath(address));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
const isThere = async (cache: ResultStore, number: number): Promise<boolean> =>
  (await readText(cache, numbered(number))) !== undefined;

/** Which files there are; to read them would be to use them. */
async function keptOf(numbers: readonly number[]): Promise<number[]> {
  const found = await Promise.allSettled(numbers.map((number) => stat(pathOf(numbered(number)))));
  return numbers.filter((_, at) => found[at]?.status === 'fulfilled');
}

/** Fills the folder with renderings of which number 0 was used last, and each next an hour before. */
async function fill(count: number): Promise<void> {
  const earlier = await openScannedCache({ folder, maxBytes: 1e9 });
  for (const number of upTo(count)) {
    await earlier.write(numbered(number), result);
    const at = new Date(Date.now() - number * HOUR_MS);
    await utimes(pathOf(numbered(number)), at, at);
  }
  earlier.close();
}

describe('the bound of the folder', () => {
  test('holds at all times under writes and removals all at once, and the sum is what is there', async () => {
    const cache = await open();
    let isOver = false;
    const watch = (async () => {
      let [most, mostThere] = [0, 0];
      for (; !isOver; await nextTurn()) {
        most = Math.max(most, cache.usage()?.heldBytes ?? 0);
        mostThere = Math.max(mostThere, await usedBytes(folder).catch(() => 0));
      }
      return { most, mostThere };
    })();
    const writeEach = async (first: number): Promise<void> => {
      for (let number = first; number < 160; number += 4) {
        await cache.write(numbered(number), result);
        if (number % 25 === 0) await cache.remove(`avatars/1/${number / 25}`);
      }
    };
    await Promise.all(upTo(4).map(writeEach));
    isOver = true;
    const { most, mostThere } = await watch;
    expect(Math.max(most, mostThere)).toBeLessThanOrEqual(MAX_BYTES);
    expect(mostThere).toBeGreaterThan(0.8 * MAX_BYTES);
    expect(cache.usage()).toMatchObject({
      heldBytes: await usedBytes(folder),
      maxBytes: MAX_BYTES,
    });
    expect(cache.usage()?.evictions).toBeGreaterThan(50);
  });

  test('costs those that were not used for longest, and leaves no folder empty', async () => {
    const cache = await open();
    await cache.write(addressOf({ originKey: 'banners/7/ab' }), result);
    const numbers = upTo(60);
    for (const number of numbers) {
      await cache.write(numbered(number), result);
      expect(await isThere(cache, number)).toBe(true);
      if (number > 2) expect(await isThere(cache, 2)).toBe(true);
    }
    const kept = await keptOf(numbers);
    expect(kept.length).toBeGreaterThan(20);
    expect(kept).toEqual([2, ...numbers.slice(1 - kept.length)]);
    expect(cache.usage()?.evictions).toBe(61 - kept.length);
    await expect(stat(join(folder, 'results/banners'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('is restored at the start, the least recently used first, to an hour', async () => {
    await fill(80);
    const cache = await open();
    const used = await usedBytes(folder);
    expect(used).toBeLessThanOrEqual(MAX_BYTES);
    expect(used).toBeGreaterThan(MAX_BYTES - 2 * COST_BYTES);
    const kept = await keptOf(upTo(80));
    expect(kept).toEqual(upTo(kept.length));
    expect(cache.usage()).toEqual({
      heldBytes: used,
      maxBytes: MAX_BYTES,
      evictions: 80 - kept.length,
    });
    // What comes next costs the next in line.
    await cache.write(numbered(1_000), result);
    expect(await isThere(cache, kept.length - 1)).toBe(false);
    expect(await isThere(cache, 0)).toBe(true);
  });

  test('is not left for one rendering: of a twentieth of it at most, when it is written and when it is read', async () => {
    const cache = await open();
    await cache.write(numbered(1), resultOf('x'.repeat(30_000)));
    await cache.write(numbered(2), resultOf('x'.repeat(29_500)));
    expect(await keptOf([1, 2])).toEqual([2]);
    cache.close();
    expect(await isThere(await open(MAX_BYTES / 2), 2)).toBe(false);
  });

  test('takes in what was removed behind its back', async () => {
    await fill(30);
    const cache = await open();
    await rm(join(folder, 'results/avatars'), { recursive: true });
    expect(await isThere(cache, 1)).toBe(false);
    for (const number of upTo(50)) await cache.write(numbered(1_000 + number), result);
    expect(await usedBytes(folder)).toBeLessThanOrEqual(MAX_BYTES);
    expect(await isThere(cache, 1_049)).toBe(true);
  });
});

test('what a read renews is the time of the last use, once an hour', async () => {
  const cache = await open();
  await cache.write(numbered(1), result);
  const minutesAfter = async (ageMs: number): Promise<number> => {
    const at = new Date(Date.now() - ageMs);
    await utimes(pathOf(numbered(1)), at, at);
    expect(await isThere(cache, 1)).toBe(true);
    return Math.round((Date.now() - (await stat(pathOf(numbered(1)))).mtimeMs) / 60_000);
  };
  expect(await minutesAfter(HOUR_MS - 120_000)).toBe(58);
  expect(await minutesAfter(HOUR_MS + 120_000)).toBe(0);
});

test('what is in the folder is read, and removed, before it is counted; nothing is written then', async () => {
  await fill(3);
  const cache = await openCache({ folder, maxBytes: MAX_BYTES });
  expect(cache.usage()).toBeUndefined();
  await cache.write(numbered(3), result);
  const [found, removed] = await Promise.all([isThere(cache, 1), cache.remove('avatars/1/2/')]);
  expect([found, removed]).toEqual([true, 1]);
  await untilScanned(cache);
  expect(await keptOf(upTo(4))).toEqual([0, 1]);
});

test('a damaged file is nothing, goes from the disk and from the sum, and is written anew', async () => {
  const cache = await open();
  await cache.write(numbered(1), result);
  await truncate(pathOf(numbered(1)), 5_000);
  expect(await isThere(cache, 1)).toBe(false);
  expect([await keptOf([1]), cache.usage()?.heldBytes]).toEqual([[], 0]);
  await cache.write(numbered(1), result);
  expect(await isThere(cache, 1)).toBe(true);
});
