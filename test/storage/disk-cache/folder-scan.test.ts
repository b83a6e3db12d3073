import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clearFolder } from '../../../src/storage/disk-cache/eviction.ts';
import {
  ageClassOf,
  cutByAge,
  fileCostBytes,
  surveyFolder,
} from '../../../src/storage/disk-cache/folder-scan.ts';
import { walkFolder } from '../../../src/storage/filesystem/folder-walk.ts';

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();
const notRefused = (path: string): never => {
  throw new Error(`${path} was refused`);
};

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'darkroom-survey-'));
});
afterEach(() => rm(root, { recursive: true }));

async function put(path: string, sizeBytes: number, ageMs = 0): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), Buffer.alloc(sizeBytes));
  const at = new Date(Date.now() - ageMs);
  await utimes(join(root, path), at, at);
}

async function listFiles(): Promise<string[]> {
  const paths: string[] = [];
  await walkFolder(root, { file: (path) => void paths.push(path.slice(root.length + 1)) });
  return paths.sort();
}

describe('a survey of a folder', () => {
  test('counts files and folders in whole blocks, and links not at all', async () => {
    await put('a/b/one', 1);
    await put('a/b/block', 4096);
    await put('a/more', 4097);
    await put('empty', 0);
    await mkdir(join(root, 'nothing'));
    await symlink(root, join(root, 'loop'));
    await symlink(join(root, 'a/more'), join(root, 'link'));
    const { files, costBytes } = await surveyFolder(root, signal, notRefused);
    expect(files).toBe(4);
    expect(costBytes).toBe(4096 * (1 + 1 + 2 + 0) + 4096 * 3);
    expect(fileCostBytes(4097)).toBe(8192);
  });

  test('finds nothing in a folder that is not there', async () => {
    const { files, costBytes } = await surveyFolder(join(root, 'none'), signal, notRefused);
    expect([files, costBytes]).toEqual([0, 0]);
  });

  test('ends with its signal', async () => {
    await put('a', 1);
    const aborted = AbortSignal.abort(new Error('closed'));
    await expect(surveyFolder(root, aborted, notRefused)).rejects.toThrow('closed');
  });
});

describe('age classes', () => {
  test('go up with age, from now to the far past, and differ by 5 % at most', () => {
    let previous = ageClassOf(0);
    expect(previous).toBe(0);
    for (let ageMs = 1_000; ageMs < 1e12; ageMs *= 1.01) {
      const ageClass = ageClassOf(ageMs);
      expect(ageClass).toBeGreaterThanOrEqual(previous);
      if (ageMs > HOUR_MS) expect(ageClassOf(ageMs * 1.05)).toBeGreaterThan(ageClass);
      previous = ageClass;
    }
    expect(ageClassOf(-HOUR_MS)).toBe(0);
    expect(ageClassOf(1e16)).toBe(ageClassOf(1e17));
  });
});

describe('a clearing by age', () => {
  const clear = async (excessBytes: number): Promise<number> => {
    const survey = await surveyFolder(root, signal, notRefused);
    let freedBytes = 0;
    const onFreed = (costBytes: number): void => {
      freedBytes += costBytes;
    };
    const cut = cutByAge(survey, excessBytes);
    const { refused } = await clearFolder(root, survey.atMs, cut, { signal, onFreed });
    expect(refused.count).toBe(0);
    return freedBytes;
  };

  test('takes the oldest, and no more than it needs', async () => {
    for (let age = 1; age <= 20; age += 1) await put(`${age % 3}/${age}`, 4096, age * HOUR_MS);
    // Of 23 blocks, 20 are of files: so many must be freed of them that the folders would bring the rest.
    expect(await clear((5 * 4096 * 23) / 20)).toBe(5 * 4096);
    const kept = (await listFiles()).map((path) => Number(path.split('/')[1]));
    expect(kept.sort((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, at) => at + 1));
  });

  test('takes of files of one age as many as it needs', async () => {
    for (let name = 0; name < 20; name += 1) await put(`${name}`, 4096, HOUR_MS);
    expect(await clear(5 * 4096)).toBe(5 * 4096);
    expect(await listFiles()).toHaveLength(15);
  });

  test('takes folders that are left empty, all the way up', async () => {
    await put('old/deep/down/file', 4096, 100 * HOUR_MS);
    await mkdir(join(root, 'empty/before'), { recursive: true });
    await put('young/file', 4096, HOUR_MS);
    expect(await clear(4 * 4096)).toBe(6 * 4096);
    const folders: string[] = [];
    await walkFolder(root, { file: () => undefined, folder: (path) => void folders.push(path) });
    expect(folders).toEqual([join(root, 'young')]);
  });

  test('takes all there is, when that is not enough', async () => {
    await put('a/one', 4096, HOUR_MS);
    await put('two', 4096);
    expect(await clear(1e9)).toBe(3 * 4096);
    expect(await listFiles()).toEqual([]);
  });

  test('leaves what was used since the survey', async () => {
    await put('old', 4096, 100 * HOUR_MS);
    await put('older', 4096, 200 * HOUR_MS);
    const survey = await surveyFolder(root, signal, notRefused);
    await utimes(join(root, 'older'), new Date(), new Date());
    const cut = cutByAge(survey, 2 * 4096);
    const options = { signal, onFreed: () => undefined };
    await clearFolder(root, survey.atMs, { ...cut, ageClass: ageClassOf(HOUR_MS) }, options);
    expect(await listFiles()).toEqual(['older']);
  });
});
