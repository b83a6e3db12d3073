import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, realpath, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/** Destination of a file, and how to write it. */
export interface WriteTarget {
  readonly path: string;
  /** Unique path for the unfinished file, on the same file system. */
  readonly temporaryPath: string;
  /** Existing folder above both; not created, since its disk may be unmounted. */
  readonly root: string;
  readonly onFolderMade?: (() => void) | undefined;
  /** Whether the path must not exist yet; otherwise an existing file is replaced. */
  readonly isNew?: boolean | undefined;
  /** Permissions of the file; by default those of new files. */
  readonly mode?: number | undefined;
  /** User and group of the file, which only root may change; by default those of the process. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  /** Throws if the complete file must not be moved to its path any more. */
  readonly beforeMove?: (() => Promise<void>) | undefined;
}

/** Maximum number of attempts to create a folder that other processes remove. */
const MAX_MOVE_ATTEMPTS = 8;

/**
 * Writes a file completely or not at all: under a temporary name, flushed to the disk, then moved to its own. Replaces an
 * existing file or a symbolic link at the path; follows no other links. A file that must be new gets its name by a link,
 * so that only one of two concurrent writes succeeds.
 *
 * Not covered: a folder that is swapped for a link between check and move; the temporary file of a killed process or on a
 * failing disk.
 *
 * @returns the status of the written file; renaming changes neither inode nor size nor modification time
 * @throws Error of a system call (`EEXIST` if the path exists but must be new), or errors of `chunks`, without a file
 */
export async function writeWholeFile(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  target: WriteTarget,
): Promise<BigIntStats> {
  const file = await openNewFile(target);
  try {
    let status: BigIntStats;
    try {
      if (target.owner !== undefined) await file.chown(target.owner.uid, target.owner.gid);
      if (target.mode !== undefined) await file.chmod(target.mode & 0o777);
      for await (const chunk of chunks) await file.writeFile(chunk);
      // Before the rename: otherwise a power cut could leave a file of zeros.
      await file.datasync();
      status = await file.stat({ bigint: true });
    } finally {
      await file.close();
    }
    await target.beforeMove?.();
    await moveIntoPlace(target);
    return status;
  } catch (error) {
    await unlink(target.temporaryPath).catch(() => undefined);
    throw error;
  }
}

/**
 * Creates a folder and its parents, like `mkdir -p`, without following symbolic links.
 *
 * @param within an existing folder above it
 * @throws Error if the path contains a link, and of a system call
 */
export async function makeFolder(
  folder: string,
  within: string,
  onMade: () => void = () => undefined,
): Promise<void> {
  if (await isRealFolder(folder)) return;
  if (folder === within) throw new Error(`The folder ${within} is missing.`);
  await makeFolder(dirname(folder), within, onMade);
  try {
    await mkdir(folder);
    onMade();
  } catch (error) {
    // Another process was first; the next call fails for a dangling link.
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}

/** Whether a path exists. @throws Error if it contains a link, and of a system call */
export async function isRealFolder(folder: string): Promise<boolean> {
  try {
    if ((await realpath(folder)) === folder) return true;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
  throw new Error(`${folder} is behind a link.`);
}

async function openNewFile({ temporaryPath, root }: WriteTarget): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  try {
    return await open(temporaryPath, flags);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    await makeFolder(dirname(temporaryPath), root); // another process removed the folder
    return open(temporaryPath, flags);
  }
}

async function moveIntoPlace({ path, temporaryPath, root, onFolderMade, isNew }: WriteTarget) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await makeFolder(dirname(path), root, onFolderMade);
      if (isNew !== true) return await rename(temporaryPath, path);
      await link(temporaryPath, path);
      return await unlink(temporaryPath);
    } catch (error) {
      // Another process removed the empty folder.
      if (systemCodeOf(error) !== 'ENOENT' || attempt === MAX_MOVE_ATTEMPTS) throw error;
    }
  }
}

/** Flushes a folder, which stores the names of its files. */
export async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, constants.O_RDONLY);
    await handle.sync();
  } catch {
    // Some file systems do not support it; the file exists all the same.
  } finally {
    await handle?.close();
  }
}
