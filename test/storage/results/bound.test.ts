import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import {
  openDirectoryStore,
  openSweptStore,
  usedBytes,
} from '../../support/result-directory/result-directory.ts';
import { storedPath } from '../../support/stored-path.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { addressOf, readText, resultOf } from '../contracts/result-store.contract.ts';

const HOUR_MS = 3_600_000;
const MAX_BYTES = 1_000_000;
/** Rendering that needs four blocks of the disk, including the directory of its original. */
const result = resultOf('x'.repeat(12_000));
const COST_BYTES = 4 * 4096;

let directory: string;
beforeEach(async () => {
  directory = (await useTemporaryDirectory()).path;
});

const open = () => openSweptStore({ directory, maxBytes: MAX_BYTES });
const numbered = (number: number) => addressOf({ originKey: `avatars/1/${number}` });
const pathOf = (number: number) => join(directory, 'results', storedPath(numbered(number)));
const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);
const isThere = async (store: ResultStore, number: number) =>
  (await readText(store, numbered(number))) !== undefined;

/** Lists files, since reading a rendering would renew its time of use. */
const keptOf = (numbers: readonly number[]) =>
  numbers.filter((number) => existsSync(pathOf(number)));

const useAt = (number: number, at: Date) => utimes(pathOf(number), at, at);

/** Stores renderings; number 0 was used last, and each next one earlier. */
async function fill(count: number, stepMs = HOUR_MS, body = result): Promise<void> {
  const earlier = await openDirectoryStore({ directory, maxBytes: 1e9 });
  const nowMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  for (const number of upTo(count)) {
    await earlier.write(numbered(number), body);
    await useAt(number, new Date(nowMs - number * stepMs));
  }
}

describe('the limit of the directory of renderings', () => {
  test('is restored by a sweep, which evicts the least recently used first, to the hour', async () => {
    await fill(100);
    const earlier = await openDirectoryStore({ directory, maxBytes: MAX_BYTES });
    expect(await isThere(earlier, 99)).toBe(true); // used now
    const store = await open();
    const used = await usedBytes(directory);
    expect(used).toBeLessThanOrEqual(0.92 * MAX_BYTES);
    expect(used).toBeGreaterThan(0.9 * MAX_BYTES - 2 * COST_BYTES);
    const kept = keptOf(upTo(100));
    expect(kept).toEqual([...upTo(kept.length - 1), 99]);
    expect(store.usage()).toEqual({
      heldBytes: used,
      maxBytes: MAX_BYTES,
      evictions: 100 - kept.length,
    });
  });

  test('evicts no additional renderings if four stores sweep at once', async () => {
    await fill(300, 0, resultOf('x'));
    const stores = await Promise.all(upTo(4).map(() => open()));
    const used = await usedBytes(directory);
    expect(used).toBeLessThanOrEqual(0.92 * MAX_BYTES);
    expect(used).toBeGreaterThan(0.82 * MAX_BYTES);
    const kept = keptOf(upTo(300));
    const left = stores.reduce((rest, store) => rest - (store.usage()?.evictions ?? 0), 300);
    expect(left).toBe(kept.length);
  });

  test('is kept, and renderings are stored, after the subdirectories were removed', async () => {
    const store = await open();
    for (const name of ['results', 'incoming'])
      await rm(join(directory, name), { recursive: true });
    await store.sweep();
    for (const number of upTo(100))
      await store.write(numbered(number), result).catch(() => undefined);
    await rm(join(directory, 'results'), { recursive: true });
    await expect
      .poll(() =>
        store.write(numbered(0), result).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    expect(await isThere(store, 0)).toBe(true);
  });

  test('is never used up by one rendering, which takes at most a twenty-fifth of it', async () => {
    const store = await open();
    await store.write(numbered(1), resultOf('x'.repeat(41_000)));
    await store.write(numbered(2), resultOf('x'.repeat(35_000)));
    expect(keptOf([1, 2])).toEqual([2]);
  });

  test('is restored without leaving empty directories or unfinished files of dead processes; those of running ones stay', async () => {
    await fill(100);
    await mkdir(join(directory, 'results/banners/7/ab'), { recursive: true });
    const scraps = ['0', '1'].map((digit) => join(directory, 'incoming', digit.repeat(32)));
    for (const path of scraps) await writeFile(path, 'x');
    const long = new Date(Date.now() - 16 * 60_000);
    await utimes(scraps[0] ?? '', long, long);
    await open();
    expect(existsSync(join(directory, 'results/banners'))).toBe(false);
    const left = await readdir(join(directory, 'results/avatars/1'));
    expect(left).toHaveLength(keptOf(upTo(100)).length);
    expect(await readdir(join(directory, 'incoming'))).toEqual(['1'.repeat(32)]);
  });

  test('applies after others have removed files', async () => {
    await fill(30);
    const store = await open();
    await rm(join(directory, 'results'), { recursive: true });
    expect(await isThere(store, 1)).toBe(false);
    for (const number of upTo(20)) {
      const write = () => store.write(numbered(1_000 + number), result);
      await vi.waitFor(write, { timeout: 20_000, interval: 5 });
    }
    expect(await isThere(store, 1_019)).toBe(true);
  });

  test('stops writes, but not reads, while the directory cannot be swept', async () => {
    const log = new RecordedLog();
    const sweepFile = new URL('missing.js', import.meta.url);
    const store = await openDirectoryStore({ directory, maxBytes: MAX_BYTES, log, sweepFile });
    let count = 0;
    const writeMore = async () => {
      for (; ; count += 1) await store.write(numbered(count), result);
    };
    await expect(writeMore()).rejects.toThrow('must be swept before the next write');
    expect(await usedBytes(directory)).toBeLessThanOrEqual(0.04 * MAX_BYTES + 3 * 4096);
    expect(keptOf(upTo(count + 1))).toEqual(upTo(count));
    expect(await isThere(store, 0)).toBe(true);
    const messages = () => log.entries.map(({ message }) => message);
    await expect.poll(messages).toEqual(['result store could not be swept']);
    expect(store.usage()).toBeUndefined();
  });
});

test('a read renews a rendering’s time of last use at most once an hour', async () => {
  const store = await open();
  await store.write(numbered(1), result);
  const minutesAfter = async (ageMs: number): Promise<number> => {
    await useAt(1, new Date(Date.now() - ageMs));
    expect(await isThere(store, 1)).toBe(true);
    return Math.round((Date.now() - (await stat(pathOf(1))).mtimeMs) / 60_000);
  };
  expect(await minutesAfter(HOUR_MS - 120_000)).toBe(58);
  expect(await minutesAfter(HOUR_MS + 120_000)).toBe(0);
});

test('a damaged rendering is a miss, is deleted, and can be written again', async () => {
  const store = await open();
  await store.write(numbered(1), result);
  await truncate(pathOf(1), 5_000);
  expect([await isThere(store, 1), keptOf([1])]).toEqual([false, []]);
  await store.write(numbered(1), result);
  expect(await isThere(store, 1)).toBe(true);
});
