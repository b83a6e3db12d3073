import { lstat, realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import type { OriginListing } from '../../pipeline/ports.ts';
import { walkFolder } from './folder-walk.ts';
import { isMissingFile } from './system-errors.ts';

/**
 * Tells what is in the folder of a `FilesystemOrigin`: the regular files that it would open, dotfiles
 * among them, and nothing that is behind a symbolic link. Folders that must not be read are left out.
 *
 * It never leaves the folder, and reads no file. Not covered: what a folder is swapped for while it is
 * being read is listed; it would not be served.
 *
 * @throws Error if there is no such folder
 */
export async function createFilesystemListing(path: string): Promise<OriginListing> {
  const root = await realpath(path);
  return {
    list: async (prefix, visit, signal) => {
      try {
        // Without the slash at its end, behind which a link is what it leads to.
        const folder = resolve(root, prefix);
        if (!(await isOwnFolder(folder, root))) return;
        for await (const entry of walkFolder(folder, { signal })) {
          if (entry.kind !== 'file') continue;
          const key = relative(root, entry.path).replaceAll(sep, '/');
          if (!visit({ key, sizeBytes: entry.sizeBytes })) return;
        }
      } catch (error) {
        signal.throwIfAborted();
        throw new MediaError('ORIGIN_ERROR', { cause: error });
      }
    },
  };
}

/** @throws Error if the root is gone: an unmounted disk is not an empty one */
async function isOwnFolder(folder: string, root: string): Promise<boolean> {
  try {
    return (await lstat(folder)).isDirectory(); // not so of a link to one
  } catch (error) {
    if (!isMissingFile(error)) throw error;
    if (!(await stat(root)).isDirectory()) throw error;
    return false;
  }
}
