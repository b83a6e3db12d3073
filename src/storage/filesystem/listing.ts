import { lstat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import type { OriginListing } from '../../pipeline/ports.ts';
import type { RootFolder } from './root-folder.ts';
import { unlessMissing } from './system-errors.ts';
import { walkFolder } from './walk.ts';

/**
 * Lists the folder of a `FilesystemOrigin`: the regular files that it would open, dotfiles included, and nothing behind
 * a symbolic link. Skips folders without read permission.
 *
 * Not covered: if a folder is swapped during its listing, entries of the replacement are listed; they would not be
 * served.
 */
export function createFilesystemListing(root: RootFolder): OriginListing {
  return {
    list: async (prefix, visit, signal) => {
      try {
        // Without a trailing slash, with which a link would be followed.
        const folder = resolve(root.path, prefix);
        const status = await unlessMissing(lstat(folder));
        // An unmounted disk is not an empty one.
        if (status === undefined && !(await root.isThere()))
          throw new Error('The root is missing.');
        if (!status?.isDirectory()) return; // a link to a folder is none
        for await (const entry of walkFolder(folder, { signal })) {
          if (entry.kind !== 'file') continue;
          const key = relative(root.path, entry.path).replaceAll(sep, '/');
          if (!visit({ key, sizeBytes: entry.sizeBytes })) return;
        }
      } catch (error) {
        signal.throwIfAborted();
        throw new MediaError('ORIGIN_ERROR', { cause: error });
      }
    },
  };
}
