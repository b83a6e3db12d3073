import { join } from 'node:path';
import { expect } from 'vitest';
import {
  createDiskCache,
  type DiskCache,
  type DiskCacheOptions,
} from '../../../src/storage/disk-cache/disk-cache.ts';
import { FOLDER_COST_BYTES, fileCostBytes } from '../../../src/storage/disk-cache/file-index.ts';
import { walkFolder } from '../../../src/storage/filesystem/folder-walk.ts';
import { RecordedLog } from '../recorded-log.ts';

/** Opens a folder of renderings and waits until all in it is known: before, nothing is written. */
export async function openScannedCache(
  options: Omit<DiskCacheOptions, 'log'> & { readonly log?: RecordedLog },
): Promise<DiskCache> {
  const cache = await createDiskCache({ log: new RecordedLog(), ...options });
  await untilScanned(cache);
  return cache;
}

/** Waits until a folder is owned and all in it is known. */
export async function untilScanned(cache: DiskCache): Promise<void> {
  await expect.poll(() => cache.usage(), { timeout: 20_000, interval: 5 }).toBeDefined();
}

/** What renderings and their folders take of the disk, counted by itself. */
export async function usedBytes(folder: string): Promise<number> {
  let bytes = 0;
  for await (const entry of walkFolder(join(folder, 'results'))) {
    bytes += entry.kind === 'file' ? fileCostBytes(entry.sizeBytes) : FOLDER_COST_BYTES;
  }
  return bytes;
}
