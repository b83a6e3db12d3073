import { rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { isRealFolder } from '../filesystem/real-folder.ts';
import type { GentlePace } from '../filesystem/throttle.ts';
import { isMissingFile, systemCodeOf } from '../missing-file.ts';
import { FOLDER_COST_BYTES, fileCostBytes } from './folder-scan.ts';

/** How a removal goes. */
export interface RemovalOptions {
  /** Is told what each file and folder took of the disk, in bytes. */
  readonly onFreed: (costBytes: number) => void;
  readonly pace: GentlePace;
  /** Is told of each step: a disk that hangs lets none follow. */
  readonly onStep: () => void;
  /** Ends the removal at its next step. */
  readonly signal: AbortSignal;
}

/**
 * Removes all regular files below a folder whose paths begin with a text, and the folders that are
 * empty then; gently, with one system call at a time.
 *
 * @param root a real path
 * @param prefix of paths below it, written straight; may end in the middle of a name
 * @returns how many files were removed
 * @throws Error if a symbolic link leads there, and of a system call; `signal.reason`; a part may have been removed
 */
export async function removeByPrefix(
  root: string,
  prefix: string,
  { onFreed, ...options }: RemovalOptions,
): Promise<number> {
  let files = 0;
  const visitor = {
    file: async (path: string, sizeBytes: number): Promise<void> => {
      if (!(await isRemoved(unlink(path)))) return;
      onFreed(fileCostBytes(sizeBytes));
      files += 1;
    },
    folder: async (path: string): Promise<void> => {
      if (await isRemoved(rmdir(path))) onFreed(FOLDER_COST_BYTES);
    },
  };
  const nameAt = prefix.lastIndexOf('/') + 1;
  let folder = join(root, prefix.slice(0, nameAt), '.');
  if (!(await isRealFolder(folder))) return 0;
  await walkFolder(folder, visitor, { ...options, namePrefix: prefix.slice(nameAt) });
  for (; folder !== root; folder = dirname(folder)) await visitor.folder(folder);
  return files;
}

/** Whether it was removed by us; what is gone already, or not empty, was not. */
async function isRemoved(call: Promise<void>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    const code = systemCodeOf(error);
    if (isMissingFile(error) || code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}
