import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import { type OriginalWriter, untilAborted } from '../../pipeline/originals/original-writer.ts';
import {
  etagOfFile,
  syncDirectory,
  systemCodeOf,
  unlessMissing,
  writeAtomically,
} from './files.ts';
import type { RootDirectory } from './root-directory.ts';

/** Errors if a file or directory exists at the path, or a file above it (`a` for `a/b`). */
const CONFLICTS: ReadonlySet<unknown> = new Set(['EEXIST', 'ENOTDIR', 'EISDIR']);

/**
 * Writes originals atomically. Unfinished files are at the top of the directory (`.incoming-…`); a killed process
 * leaves its own.
 *
 * Not covered: a separate file system below the directory, into which files cannot be moved; one without hard links,
 * where new files cannot be created; a file that is replaced between the check of `ifMatch` and the move; access
 * control lists and extended attributes of a replaced file.
 */
export function createFilesystemWriter(root: RootDirectory): OriginalWriter {
  /** @throws Error for an invalid key, and if the disk is not mounted */
  const findPath = async (key: string): Promise<string> => {
    const path = root.pathOf(key);
    if (path === undefined) throw new Error(`Invalid key: ${key}`);
    if (await root.isMounted()) return path;
    throw new Error(`${root.path} or its STORAGE_MARKER is missing.`);
  };
  return {
    // A directory has no multipart uploads that the platform could complete.
    writePart: undefined,
    // Each chunk is written before the next one is read.
    memoryBytesOf: () => 0,
    has: async (key) => (await unlessMissing(lstat(await findPath(key)))) !== undefined,
    write: async (key, chunks, { signal, isNew, ifMatch }) => {
      signal.throwIfAborted();
      const path = await findPath(key);
      const replaced = ifMatch === undefined ? undefined : await readAttributes(path, ifMatch);
      const temporaryPath = join(root.path, `.incoming-${randomBytes(16).toString('hex')}`);
      const target = { path, temporaryPath, root: root.path, isNew, ...replaced };
      const status = await writeAtomically(untilAborted(chunks, signal), target).catch(
        (error: unknown) => {
          if (!CONFLICTS.has(systemCodeOf(error))) throw error;
          throw new MediaError('MEDIA_EXISTS', { cause: error });
        },
      );
      await syncDirectory(dirname(path));
      return etagOfFile(status);
    },
  };
}

/** Returns the attributes to copy from the replaced file. @throws MediaError `PRECONDITION_FAILED` */
async function readAttributes(path: string, ifMatch: string) {
  const check = async (): Promise<BigIntStats> => {
    const status = await unlessMissing(lstat(path, { bigint: true }));
    if (status?.isFile() !== true || etagOfFile(status) !== ifMatch) {
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
