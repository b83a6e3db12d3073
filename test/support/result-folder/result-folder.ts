import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import {
  openResultFolder,
  type ResultFolder,
  type ResultFolderDoubles,
} from '../../../src/storage/results/directory.ts';
import { RecordedLog } from '../recorded-log.ts';

type Options = ResultFolderDoubles & {
  readonly folder: string;
  readonly maxBytes: number;
  readonly log?: RecordedLog;
};

const BLOCK_BYTES = 4096;

/** Threads run compiled files, like in production. */
const sweepFile = new URL('../../../dist/storage/results/sweep-thread.js', import.meta.url);

/** Opens a folder of renderings that nobody has swept, and closes it after the test. */
export async function openFolder({
  folder: path,
  maxBytes,
  log = new RecordedLog(),
  ...doubles
}: Options): Promise<ResultFolder> {
  const folder = await openResultFolder(path, maxBytes, log, { sweepFile, ...doubles });
  onTestFinished(() => folder.close());
  return folder;
}

/** Opens a folder of renderings and sweeps it, as the service does after its start. */
export async function openSweptFolder(options: Options): Promise<ResultFolder> {
  const folder = await openFolder(options);
  await folder.sweep();
  expect(folder.usage()).toBeDefined();
  return folder;
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
