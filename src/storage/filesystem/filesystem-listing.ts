import { lstat, realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import { walkFolder } from './folder-walk.ts';
import { isMissingFile } from './system-errors.ts';

/**
 * Tells what is in the folder of a `FilesystemOrigin`: the regular files that it would open, dotfiles
 * among them, and nothing that is behind a symbolic link. Folders that must not be read are left out.
 *
 * It never leaves the folder, and reads no file. Not covered: what a folder is swapped for while it is
 * being read is listed; it would not be served.
 */
export class FilesystemListing implements OriginListing {
  readonly #root: string;

  /** @param root the folder; a real path, see `createFilesystemListing` */
  constructor(root: string) {
    this.#root = root;
  }

  async list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      // Without the slash at its end, behind which a link is what it leads to.
      const folder = resolve(this.#root, prefix);
      if (!(await this.#isOwnFolder(folder))) return;
      for await (const entry of walkFolder(folder, { signal })) {
        if (entry.kind !== 'file') continue;
        const key = relative(this.#root, entry.path).replaceAll(sep, '/');
        if (!visit({ key, sizeBytes: entry.sizeBytes })) return;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw new MediaError('ORIGIN_ERROR', { cause: error });
    }
  }

  /** @throws Error if the root is gone: an unmounted disk is not an empty one */
  async #isOwnFolder(folder: string): Promise<boolean> {
    try {
      return (await lstat(folder)).isDirectory(); // not so of a link to one
    } catch (error) {
      if (!isMissingFile(error)) throw error;
      if (!(await stat(this.#root)).isDirectory()) throw error;
      return false;
    }
  }
}

/**
 * Opens a folder to be listed.
 *
 * @throws Error if there is no such folder
 */
export async function createFilesystemListing(folder: string): Promise<FilesystemListing> {
  return new FilesystemListing(await realpath(folder));
}
