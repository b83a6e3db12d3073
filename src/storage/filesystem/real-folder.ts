import { mkdir, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from '../missing-file.ts';

/**
 * Makes a folder with all above it, like `mkdir -p`, but through no symbolic link.
 *
 * @param within a folder above it, which must exist: that of an unmounted disk is not made anew
 * @returns how many folders were made
 * @throws Error if a link leads there, and of a system call
 */
export async function makeFolder(folder: string, within: string): Promise<number> {
  if (await isRealFolder(folder)) return 0;
  if (folder === within) throw new Error(`There is no folder ${within} any more.`);
  const made = await makeFolder(dirname(folder), within);
  try {
    await mkdir(folder);
    return made + 1;
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error;
    return made; // another was first; a link without a target fails whatever comes next
  }
}

/**
 * Whether something is at a path, and no link on the way to it.
 *
 * @throws Error if a link leads there, and of a system call
 */
export async function isRealFolder(folder: string): Promise<boolean> {
  try {
    if ((await realpath(folder)) === folder) return true;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
  throw new Error(`${folder} is behind a link.`);
}
