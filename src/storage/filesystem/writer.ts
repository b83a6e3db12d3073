import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import { type OriginalWriter, untilStopped } from '../../pipeline/originals/original-writer.ts';
import { fileEtagOf } from './opened-file.ts';
import type { RootFolder } from './root-folder.ts';
import { systemCodeOf, unlessMissing } from './system-errors.ts';
import { syncFolder, writeWholeFile } from './whole-file.ts';

/** Codes for a file in the way: at a path that must be free, above it (`a` of `a/b`), or below, if it is a folder. */
const IN_THE_WAY: ReadonlySet<unknown> = new Set(['EEXIST', 'ENOTDIR', 'EISDIR']);

/**
 * Writes originals into the folder of originals. A file is written at the top of the folder, under a
 * name that is not an original's key, and gets its own name once it is completely on the disk (`writeWholeFile`).
 *
 * Not covered: a separate file system below the folder, into which no file can be moved; one without hard links, where
 * nothing can be written that must be new; orphans of a killed process (`.incoming-…`); a file that is replaced between
 * the check of `ifMatch` and the move; access control lists and extended attributes of a file that is replaced.
 */
export function createFilesystemWriter(root: RootFolder): OriginalWriter {
  /** @throws Error also if the disk is not mounted: an original would be written to the disk below */
  const findPath = async (key: string): Promise<string> => {
    const path = root.pathOf(key);
    if (path === undefined) throw new Error(`${key} is not a key that is written straight.`);
    if (await root.isMounted()) return path;
    throw new Error(`${root.path}, or the file STORAGE_MARKER in it, is gone.`);
  };
  return {
    // A file appears as a whole, so parts cannot be completed by others.
    writePart: undefined,
    // Each piece is written before the next one is taken.
    heldBytesOf: () => 0,
    // A link or a folder is in the way, too.
    has: async (key) => (await unlessMissing(lstat(await findPath(key)))) !== undefined,
    write: async (key, chunks, { signal, isNew, ifMatch }) => {
      signal.throwIfAborted();
      const path = await findPath(key);
      const replaced = ifMatch === undefined ? undefined : await findState(path, ifMatch);
      const temporaryPath = join(root.path, `.incoming-${randomBytes(16).toString('hex')}`);
      const place = { path, temporaryPath, root: root.path, isNew, ...replaced };
      const status = await writeWholeFile(untilStopped(chunks, signal), place).catch(
        (error: unknown) => {
          if (!IN_THE_WAY.has(systemCodeOf(error))) throw error;
          throw new MediaError('MEDIA_EXISTS', { cause: error });
        },
      );
      await syncFolder(dirname(path));
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
  const owner = { uid: Number(uid), gid: Number(gid) };
  return {
    mode: Number(mode),
    owner: process.geteuid?.() === 0 ? owner : undefined,
    beforeMove: async () => void (await check()),
  };
}
