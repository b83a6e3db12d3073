import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openFolder } from '../../support/result-folder/result-folder.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, resultOf } from '../contracts/result-store.contract.ts';

const STORE = resolve(import.meta.dirname, '../../../dist/storage/results/folder.js');
const MEASURE = resolve(import.meta.dirname, '../../support/result-folder/measure-folder.mjs');

/** Two million were measured by hand: memory does not depend on the number. */
const FOLDERS = 25_000;
const FILES_PER_FOLDER = 4;
const READS = 2_000;

interface Measured {
  readonly openedMs: number;
  /** CPU time of reads, before a sweep. */
  readonly readsMs: number;
  /** Most resident memory, the sweep included. */
  readonly peakBytes: number;
  readonly usage: { readonly heldBytes: number };
}

/** Opens, reads and sweeps a folder in a process of its own. */
async function measure(folder: string): Promise<Measured> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    MEASURE,
    STORE,
    folder,
    `${READS}`,
  ]);
  return JSON.parse(stdout);
}

async function fill(folder: string, folders: number): Promise<void> {
  const store = await openFolder({ folder, maxBytes: 1e12 });
  await store.write(addressOf(), resultOf('a rendering'));
  const names = Array.from({ length: FILES_PER_FOLDER }, (_, at) =>
    `${at}`.repeat(16).concat('-', '0'.repeat(16)),
  );
  for (let id = 0; id < folders; id += 1) {
    const path = join(folder, 'results/banners', String(id));
    await mkdir(path, { recursive: true });
    for (const name of names) await writeFile(join(path, name), '');
  }
}

test('a folder of 100 000 files costs no memory, and neither the start nor reads are slower', {
  timeout: 600_000,
}, async () => {
  const [empty, full] = [(await useTemporaryFolder()).path, (await useTemporaryFolder()).path];
  await fill(empty, 0);
  await fill(full, FOLDERS);
  const [few, many] = [await measure(empty), await measure(full)];
  // The files, those in the folder of the one that is read, and the folders.
  expect(many.usage.heldBytes - few.usage.heldBytes).toBe(
    4096 * (FOLDERS * (FILES_PER_FOLDER + 1) + 1),
  );
  expect(many.openedMs - few.openedMs).toBeLessThan(2_000);
  expect(many.peakBytes - few.peakBytes).toBeLessThan(40 * 1024 ** 2);
  expect(many.readsMs).toBeLessThan(2 * few.readsMs);
  await rm(join(full, 'results'), { recursive: true }); // a hook would have less time
});
