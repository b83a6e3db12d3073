import { rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { isMissingFile, systemCodeOf } from '../filesystem/system-errors.ts';
import { isRealFolder } from '../filesystem/whole-file.ts';

/** Folder of renderings, and callbacks of its removals. */
export interface RemovalPlace {
  /** Real path of the folder of renderings. */
  readonly resultsPath: string;
  /** Called for each removed folder. */
  readonly onFolderRemoved?: (() => void) | undefined;
  /** Called with the `resultPath` of each file that was removed, or was already missing. */
  readonly onFileRemoved?: ((path: string) => void) | undefined;
}

/**
 * Removes all renderings whose path begins with a text, and folders that become empty; follows no link.
 *
 * @param signal ends the removal
 * @param onStep called at each step; stays away while a disk hangs
 * @returns the number of removed renderings
 * @throws Error if a symbolic link leads there, and of a system call; `signal.reason`
 */
export async function removeAll(
  place: RemovalPlace,
  prefix: string,
  signal: AbortSignal,
  onStep: () => void,
): Promise<number> {
  const { resultsPath, onFolderRemoved, onFileRemoved } = place;
  const nameAt = prefix.lastIndexOf('/') + 1;
  const folder = join(resultsPath, prefix.slice(0, nameAt), '.');
  if (!(await isRealFolder(folder))) return 0;
  let files = 0;
  const namePrefix = prefix.slice(nameAt);
  for await (const entry of walkFolder(folder, { namePrefix, signal, onStep })) {
    if (entry.kind === 'refused') throw entry.error;
    if (entry.kind === 'folder') {
      if (await isRemoved(rmdir(entry.path))) onFolderRemoved?.();
      continue;
    }
    const path = entry.path.slice(resultsPath.length + 1);
    if (!isResultPath(path) || !(await isRemoved(unlink(entry.path)))) continue;
    onFileRemoved?.(path);
    files += 1;
  }
  await removeEmpty(place, folder);
  return files;
}

/**
 * Removes one rendering, if it exists, and folders that become empty.
 *
 * @throws Error if a symbolic link leads there, and of a system call
 */
export async function removeFile(place: RemovalPlace, path: string): Promise<void> {
  const fullPath = join(place.resultsPath, path);
  const folder = dirname(fullPath);
  if (!(await isRealFolder(folder))) return;
  await isRemoved(unlink(fullPath));
  place.onFileRemoved?.(path);
  await removeEmpty(place, folder);
}

/** Whether the call removed anything; false for missing entries, and for folders that are not empty. */
export async function isRemoved(call: Promise<void>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    const code = systemCodeOf(error);
    if (isMissingFile(error) || code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes a folder if it is empty, and then its parents likewise. */
async function removeEmpty(place: RemovalPlace, folder: string): Promise<void> {
  for (let path = folder; path !== place.resultsPath; path = dirname(path)) {
    if (!(await isRemoved(rmdir(path)))) return;
    place.onFolderRemoved?.();
  }
}
