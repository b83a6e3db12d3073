import { type BigIntStats, constants, readlinkSync } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';

/** A file that was opened for reading. */
export interface OpenedFile {
  readonly file: FileHandle;
  readonly status: BigIntStats;
}

/** A file may be replaced in the moment between its opening and the look at its path. */
const MAX_ATTEMPTS = 3;

/**
 * Opens a regular file, if there is one at this very path: no part of it may be a link.
 *
 * The kernel is asked where what was opened is; on systems without /proc, the path is looked at once more.
 * Of an open file, the path is in the kernel's memory: to ask for it at once costs less than to wake a thread
 * that asks. Its status may have to be asked of a file server.
 *
 * @param path absolute and straight: no `..`, no `.`, no two slashes
 * @returns `undefined` where there is something else
 * @throws what `open` of node:fs throws
 */
export async function openRegularFile(
  path: string,
  findPath: (opened: OpenedFile, path: string) => Promise<string> = findOpenedPath,
): Promise<OpenedFile | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    // O_NONBLOCK: a named pipe must not hang the open.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(path, flags);
    try {
      const status = await file.stat({ bigint: true });
      if (status.isFile() && (await findPath({ file, status }, path)) === path) {
        return { file, status };
      }
      const isReplaced = (await file.stat()).nlink === 0;
      await file.close();
      if (!isReplaced) return undefined;
    } catch (error) {
      await file.close();
      throw error;
    }
  }
  return undefined;
}

async function findOpenedPath(opened: OpenedFile, path: string): Promise<string> {
  try {
    return readlinkSync(`/proc/self/fd/${opened.file.fd}`);
  } catch {
    return findRealPath(opened, path);
  }
}

/**
 * The real path, if that is still the file that was opened. A folder that is swapped for a link and back
 * meanwhile is not noticed.
 */
export async function findRealPath({ status }: OpenedFile, path: string): Promise<string> {
  const real = await realpath(path);
  const there = await stat(real, { bigint: true });
  return there.ino === status.ino && there.dev === status.dev ? real : '';
}
