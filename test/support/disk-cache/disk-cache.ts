import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { ResultAddress, ResultStore } from '../../../src/pipeline/ports.ts';
import {
  createDiskCache,
  type DiskCache,
  type DiskCacheOptions,
} from '../../../src/storage/disk-cache/disk-cache.ts';
import { RecordedLog } from '../recorded-log.ts';

type Options = Omit<DiskCacheOptions, 'log'> & { readonly log?: RecordedLog };

const BLOCK_BYTES = 4096;

/** Opens a folder of renderings, which is closed after the test; what is in it may not be known yet. */
export async function openCache(options: Options): Promise<DiskCache> {
  const cache = await createDiskCache({ log: new RecordedLog(), ...options });
  onTestFinished(() => cache.close());
  return cache;
}

/** Opens a folder of renderings and waits until all in it is known: before, nothing is written. */
export async function openScannedCache(options: Options): Promise<DiskCache> {
  const cache = await createDiskCache({ log: new RecordedLog(), ...options });
  await untilScanned(cache);
  return cache;
}

/** Waits until a folder is owned and all in it is known. */
export async function untilScanned(cache: DiskCache): Promise<void> {
  await expect.poll(() => cache.usage(), { timeout: 20_000, interval: 5 }).toBeDefined();
}

/** What renderings and their folders take of the disk, in whole blocks, and never less than the system says. */
export async function usedBytes(folder: string): Promise<number> {
  const root = join(folder, 'results');
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const costs = entries.map(async (entry) => {
    if (entry.isDirectory()) return BLOCK_BYTES;
    const status = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined);
    if (status === undefined) return 0; // removed meanwhile
    const blocks = Math.max(1, Math.ceil(status.size / BLOCK_BYTES));
    return Math.max(512 * status.blocks, blocks * BLOCK_BYTES);
  });
  return (await Promise.all(costs)).reduce((sum, cost) => sum + cost, 0);
}

/** What a rendering says, as text; `undefined` where there is none. */
export async function readText(
  store: ResultStore,
  address: ResultAddress,
): Promise<string | undefined> {
  const result = await store.read(address, new AbortController().signal, () => true);
  return result && Buffer.from(result.body).toString();
}
