import { mkdir, mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ResultAddress } from '../../../src/pipeline/ports.ts';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import {
  createFilesystemResultStore,
  type FilesystemResultStore,
} from '../../../src/storage/disk-cache/disk-cache.ts';
import { FolderBound } from '../../../src/storage/disk-cache/disk-quota.ts';
import { FOLDER_COST_BYTES, fileCostBytes } from '../../../src/storage/disk-cache/folder-scan.ts';
import { walkFolder } from '../../../src/storage/filesystem/folder-walk.ts';
import { formatResultFile } from '../../../src/storage/result-file.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { addressOf, anySize } from '../contracts/result-store.contract.ts';

/** For work in the background on a busy machine. */
const patience = { timeout: 20_000 };
const HOUR_MS = 3_600_000;
const MAX_BYTES = 2_000_000;
const { signal } = new AbortController();
/** Takes four blocks of the disk, with the folder of its original. */
const result = { body: Buffer.alloc(12_000, 'x'), mimeType: 'image/webp' };
const COST_BYTES = 4 * 4096;

let folder: string;
const opened: FilesystemResultStore[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-results-'));
});
afterEach(async () => {
  for (const store of opened.splice(0)) store.close();
  await rm(folder, { recursive: true, maxRetries: 3 });
});

async function openStore(maxBytes: number, log = new RecordedLog()) {
  const store = await createFilesystemResultStore({ folder, maxBytes, log });
  opened.push(store);
  return store;
}

async function openCounted(maxBytes: number, log = new RecordedLog()) {
  const store = await openStore(maxBytes, log);
  await expect.poll(() => log.count('result store counted'), patience).toBeGreaterThan(0);
  return store;
}

const numbered = (number: number): ResultAddress => addressOf({ originKey: `avatars/1/${number}` });
const pathOf = (address: ResultAddress): string => join(folder, 'results', resultPath(address));

/** A bound of 1 MB whose surveys fail, so that it knows only what it is told. */
function uncountable(log: RecordedLog): FolderBound {
  const beforeSurvey = async (): Promise<never> => {
    throw new Error('broken disk');
  };
  return new FolderBound({ folder, maxBytes: 1_000_000, log, beforeSurvey });
}

/** Writes, and lets others on: a write that finds no room is over at once, and a loop of them never ends. */
async function write(store: FilesystemResultStore, number: number): Promise<void> {
  await store.write(numbered(number), result);
  await nextTurn();
}

/** What the folder takes of the disk, counted by itself. */
async function usedBytes(): Promise<number> {
  let bytes = 0;
  await walkFolder(join(folder, 'results'), {
    file: (_path, sizeBytes) => {
      bytes += fileCostBytes(sizeBytes);
    },
    folder: () => {
      bytes += FOLDER_COST_BYTES;
    },
  });
  return bytes;
}

async function keptNumbers(store: FilesystemResultStore, count: number): Promise<number[]> {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const found = await Promise.all(
    numbers.map((number) => store.read(numbered(number), signal, anySize)),
  );
  return numbers.filter((number) => found[number] !== undefined);
}

/** Fills the folder with renderings of which number 0 was used last, and each next an hour before. */
async function fill(count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const path = pathOf(numbered(number));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, Buffer.concat(formatResultFile(numbered(number), result) ?? []));
    // Half past, so that no age is at the border of an hour.
    const at = new Date(Date.now() - (number + 0.5) * HOUR_MS);
    await utimes(path, at, at);
  }
}

/** Nobody of those that are gone was used later than any that is left, but for the width of an age class. */
function expectOldestGone(kept: readonly number[], count: number): void {
  const gone = Array.from({ length: count }, (_, number) => number).filter(
    (number) => !kept.includes(number),
  );
  expect(gone.length).toBeGreaterThan(0);
  expect(Math.min(...gone)).toBeGreaterThan(0.95 * Math.max(...kept) - 1);
}

describe('the bound of the folder', () => {
  test('holds under writes without end, which go on', async ({ signal: late }) => {
    const log = new RecordedLog();
    const store = await openCounted(MAX_BYTES, log);
    let most = 0;
    let number = 0;
    for (; log.count('result store cleared') < 4; number += 1) {
      late.throwIfAborted();
      await write(store, number);
      if (number % 10 === 0) most = Math.max(most, await usedBytes());
    }
    expect(most).toBeLessThanOrEqual(MAX_BYTES);
    expect(most).toBeGreaterThan(0.9 * MAX_BYTES);
    expect(number).toBeGreaterThan(MAX_BYTES / COST_BYTES);
    expect(await usedBytes()).toBeGreaterThan(0.8 * MAX_BYTES);
  });

  test('holds under writes all at once', async () => {
    const store = await openCounted(MAX_BYTES);
    await Promise.all(Array.from({ length: 400 }, (_, at) => store.write(numbered(at), result)));
    const used = await usedBytes();
    expect(used).toBeLessThanOrEqual(0.1 * MAX_BYTES); // what may be written between two surveys
    expect(used).toBeGreaterThan(0);
  });

  test('costs those that were not used for longest', async () => {
    const log = new RecordedLog();
    await fill(110);
    const store = await openCounted(MAX_BYTES, log);
    const [oldest, nextOldest] = [numbered(109), numbered(108)];
    for (const address of [oldest, nextOldest]) {
      expect(await store.read(address, signal, anySize)).toBeDefined();
    }
    for (let number = 1_000; number < 1_008; number += 1) await write(store, number);
    await expect.poll(() => log.count('result store cleared'), patience).toBe(1);
    const kept = await keptNumbers(store, 110);
    expect(kept.slice(-2)).toEqual([108, 109]);
    expectOldestGone(kept.slice(0, -2), 108);
    expect(kept.length).toBeGreaterThan(80);
  });

  test('is restored at the start, from a folder that is above it', async () => {
    await fill(250);
    expect(await usedBytes()).toBeGreaterThan(2 * MAX_BYTES);
    const log = new RecordedLog();
    const store = await openStore(MAX_BYTES, log);
    await expect.poll(() => log.count('result store cleared'), patience).toBe(1);
    const used = await usedBytes();
    expect(used).toBeLessThanOrEqual(0.85 * MAX_BYTES);
    expect(used).toBeGreaterThan(0.75 * MAX_BYTES);
    expectOldestGone(await keptNumbers(store, 250), 250);
  });

  test('lets a twentieth in while nothing is counted yet', async () => {
    const store = await openStore(MAX_BYTES);
    await Promise.all(Array.from({ length: 50 }, (_, at) => store.write(numbered(at), result)));
    const used = await usedBytes();
    expect(used).toBeLessThanOrEqual(0.05 * MAX_BYTES);
    expect(used).toBeGreaterThan(0);
  });

  test('holds for two stores on one folder, and neither harms the other', async ({
    signal: late,
  }) => {
    const logs = [new RecordedLog(), new RecordedLog()];
    const stores = await Promise.all(logs.map((log) => openCounted(MAX_BYTES, log)));
    const [first, second] = stores as [FilesystemResultStore, FilesystemResultStore];
    await first.write(addressOf(), result);
    expect(await second.read(addressOf(), signal, anySize)).toBeDefined();
    expect(await second.remove('avatars/1/ab12/')).toBe(1);
    expect(await first.read(addressOf(), signal, anySize)).toBeUndefined();
    let most = 0;
    for (let number = 0; logs.some((log) => log.count('result store cleared') < 2); number += 1) {
      late.throwIfAborted();
      const writes = stores.map((store, at) => write(store, 2 * number + at));
      await Promise.all(writes);
      if (number % 10 === 0) most = Math.max(most, await usedBytes());
    }
    expect(most).toBeLessThanOrEqual(1.1 * MAX_BYTES);
    expect(most).toBeGreaterThan(0.9 * MAX_BYTES);
    for (const log of logs) expect(log.entries.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  test('knows what was not written after all, and what was removed', () => {
    const bound = uncountable(new RecordedLog());
    expect(bound.tryReserve(50_000)).toBe(true);
    expect(bound.tryReserve(1)).toBe(false);
    bound.settle(50_000, 20_000);
    expect(bound.tryReserve(30_001)).toBe(false);
    expect(bound.tryReserve(30_000)).toBe(true);
    bound.release(10_000);
    expect(bound.tryReserve(10_001)).toBe(false);
    expect(bound.tryReserve(10_000)).toBe(true);
    bound.close();
  });
});

describe('the work in the background', () => {
  test('ends when the store is closed, without a word', async () => {
    await fill(300);
    const log = new RecordedLog();
    const store = await openStore(MAX_BYTES, log);
    store.close();
    await new Promise((done) => setTimeout(done, 300));
    expect(log.entries).toEqual([]);
    expect(await keptNumbers(store, 300)).toHaveLength(300);
  });

  test('takes a turn of the event loop for every file', async ({ signal: late }) => {
    await fill(400);
    const log = new RecordedLog();
    let turns = 0;
    await openStore(MAX_BYTES, log);
    for (; log.count('result store cleared') === 0; turns += 1) {
      late.throwIfAborted();
      await nextTurn();
    }
    expect(turns).toBeGreaterThan(2 * 400);
  });

  test('goes on when another has cleared first', async ({ signal: late }) => {
    await fill(200);
    const log = new RecordedLog();
    const store = await openStore(MAX_BYTES, log);
    // Behind its back, between its survey and its clearing: nothing is left for it to free.
    while (log.count('result store counted') === 0) {
      late.throwIfAborted();
      await nextTurn();
    }
    await rm(join(folder, 'results/avatars'), { recursive: true });
    await expect.poll(() => log.count('result store counted'), patience).toBeGreaterThan(1);
    await store.write(numbered(1_000), result);
    expect(await keptNumbers(store, 1_001)).toEqual([1_000]);
  });

  test('tells of a survey that fails, once a minute, and lets a twentieth in', async () => {
    const log = new RecordedLog();
    const bound = uncountable(log);
    const accepted = Array.from({ length: 20 }, () => bound.tryReserve(10_000)).filter(Boolean);
    expect(accepted).toHaveLength(5);
    await expect.poll(() => log.count('the folder of the result store cannot be counted')).toBe(1);
    expect(bound.tryReserve(10_000)).toBe(false);
    await new Promise((done) => setTimeout(done, 20));
    expect(log.entries).toHaveLength(1);
    bound.close();
  });
});

test('a file costs no less than the disk gives it', async () => {
  const store = await openCounted(MAX_BYTES);
  await store.write(numbered(1), result);
  const { size, blocks } = await stat(pathOf(numbered(1)));
  expect(fileCostBytes(size)).toBeGreaterThanOrEqual(512 * blocks);
});
