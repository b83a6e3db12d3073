import { lstat, realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import { isMissingFile } from '../missing-file.ts';
import { walkFolder } from './folder-walk.ts';
import { GentlePace } from './throttle.ts';

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
    const enough = new AbortController();
    try {
      // Without the slash at its end, behind which a link is what it leads to.
      const folder = resolve(this.#root, prefix);
      if (!(await this.#isOwnFolder(folder))) return;
      const visitor = {
        file: (path: string, sizeBytes: number): void => {
          const key = relative(this.#root, path).replaceAll(sep, '/');
          if (!visit({ key, sizeBytes })) enough.abort();
        },
        refused: (): void => undefined,
      };
      const either = AbortSignal.any([signal, enough.signal]);
      await walkFolder(folder, visitor, { signal: either, pace: new GentlePace() });
    } catch (error) {
      signal.throwIfAborted();
      if (!enough.signal.aborted) throw new MediaError('ORIGIN_ERROR', { cause: error });
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
