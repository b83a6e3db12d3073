import { rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { isMissingFile, systemCodeOf } from '../filesystem/system-errors.ts';
import { isRealFolder } from '../filesystem/whole-file.ts';

/** Where renderings are removed, and what to call as they are. */
export interface RemovalPlace {
  /** Where the renderings are: a real path. */
  readonly resultsPath: string;
  /** Called for each folder that was removed. */
  readonly onFolderRemoved?: (() => void) | undefined;
  /** Called with the `resultPath` of each file that was removed, or is not there any more. */
  readonly onFileRemoved?: ((path: string) => void) | undefined;
}

/**
 * Removes all renderings whose path begins with a text, and the folders that are empty then; nothing else, and no
 * link is followed.
 *
 * @param signal ends the removal
 * @param onStep called at each step: a disk that hangs lets none follow
 * @returns how many there were
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
 * Removes one rendering, if it is there, and the folders that are empty then.
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

/** Whether it was removed by us; what is gone already, or not empty, was not. */
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

/** Removes a folder, if nothing is in it, and those above it likewise. */
async function removeEmpty(place: RemovalPlace, folder: string): Promise<void> {
  for (let path = folder; path !== place.resultsPath; path = dirname(path)) {
    if (!(await isRemoved(rmdir(path)))) return;
    place.onFolderRemoved?.();
  }
}
