import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import { type OriginalWriter, untilStopped } from '../../pipeline/originals/original-writer.ts';
import { fileEtagOf, syncDirectory, systemCodeOf, unlessMissing, writeWholeFile } from './files.ts';
import type { RootDirectory } from './root-directory.ts';

/** Errors for an existing file or directory at a path, or a file above it (`a` of `a/b`). */
const CONFLICTS: ReadonlySet<unknown> = new Set(['EEXIST', 'ENOTDIR', 'EISDIR']);

/**
 * Writes originals into the directory of originals. A file is written at the top of the directory under a temporary
 * name, and gets its own once it is completely on the disk (`writeWholeFile`).
 *
 * Not covered: a separate file system below the directory, into which files cannot be moved; one without hard links,
 * where new files cannot be created; orphans of a killed process (`.incoming-…`); a file that is replaced between the
 * check of `ifMatch` and the move; access control lists and extended attributes of a replaced file.
 */
export function createFilesystemWriter(root: RootDirectory): OriginalWriter {
  /** @throws Error for an invalid key, and if the disk is not mounted */
  const findPath = async (key: string): Promise<string> => {
    const path = root.pathOf(key);
    if (path === undefined) throw new Error(`Invalid key: ${key}`);
    if (await root.isMounted()) return path;
    throw new Error(`${root.path}, or the file STORAGE_MARKER in it, is gone.`);
  };
  return {
    // Files appear completely, so the platform cannot complete parts.
    writePart: undefined,
    // Each chunk is written before the next one is read.
    heldBytesOf: () => 0,
    // Includes links and directories.
    has: async (key) => (await unlessMissing(lstat(await findPath(key)))) !== undefined,
    write: async (key, chunks, { signal, isNew, ifMatch }) => {
      signal.throwIfAborted();
      const path = await findPath(key);
      const replaced = ifMatch === undefined ? undefined : await findState(path, ifMatch);
      const temporaryPath = join(root.path, `.incoming-${randomBytes(16).toString('hex')}`);
      const place = { path, temporaryPath, root: root.path, isNew, ...replaced };
      const status = await writeWholeFile(untilStopped(chunks, signal), place).catch(
        (error: unknown) => {
          if (!CONFLICTS.has(systemCodeOf(error))) throw error;
          throw new MediaError('MEDIA_EXISTS', { cause: error });
        },
      );
      await syncDirectory(dirname(path));
      return fileEtagOf(status);
    },
  };
}

/** Returns what a file takes over from the one that it replaces. @throws MediaError `PRECONDITION_FAILED` */
async function findState(path: string, ifMatch: string) {
  const check = async (): Promise<BigIntStats> => {
    const status = await unlessMissing(lstat(path, { bigint: true }));
    if (status?.isFile() !== true || fileEtagOf(status) !== ifMatch) {
      throw new MediaError('PRECONDITION_FAILED');
    }
    return status;
  };
  const { mode, uid, gid } = await check();
  return {
    mode: Number(mode),
    owner: { uid: Number(uid), gid: Number(gid) },
    beforeMove: async () => void (await check()),
  };
}
