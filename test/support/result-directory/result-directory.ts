import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import {
  openResultDirectory,
  type ResultDirectory,
  type ResultDirectoryDoubles,
} from '../../../src/storage/results/directory.ts';
import { RecordedLog } from '../recorded-log.ts';

type Options = ResultDirectoryDoubles & {
  readonly directory: string;
  readonly maxBytes: number;
  readonly log?: RecordedLog;
};

const BLOCK_BYTES = 4096;

/** Threads need compiled files. */
const sweepFile = new URL('../../../dist/storage/results/sweep-thread.js', import.meta.url);

/** Opens a directory of renderings without sweeping it, and closes it after the test. */
export async function openDirectoryStore({
  directory: path,
  maxBytes,
  log = new RecordedLog(),
  ...doubles
}: Options): Promise<ResultDirectory> {
  const directory = await openResultDirectory(path, maxBytes, log, { sweepFile, ...doubles });
  onTestFinished(() => directory.close());
  return directory;
}

/** Opens a directory of renderings and sweeps it, as the service does after its start. */
export async function openSweptStore(options: Options): Promise<ResultDirectory> {
  const directory = await openDirectoryStore(options);
  await directory.sweep();
  expect(directory.usage()).toBeDefined();
  return directory;
}

/** Returns the disk space of renderings and their directories: complete blocks, or `st_blocks` if larger. */
export async function usedBytes(directory: string): Promise<number> {
  const root = join(directory, 'results');
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
