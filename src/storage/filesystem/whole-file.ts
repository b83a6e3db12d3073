import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, realpath, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/** Destination of a file, and how the file is written there. */
export interface FilePlace {
  readonly path: string;
  /** Path for the unfinished file: on the same file system, under a name that nobody else uses. */
  readonly temporaryPath: string;
  /** A folder above both, which must exist: that of an unmounted disk is not created. */
  readonly root: string;
  readonly onFolderMade?: (() => void) | undefined;
  /** Whether the path must not exist yet; otherwise an existing file is replaced. */
  readonly isNew?: boolean | undefined;
  /** Permissions of the file; by default those of a new one. */
  readonly mode?: number | undefined;
  /** User and group of the file, which only root may change; by default those of the process. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  /** Throws if the complete file must not be moved to its path any more. */
  readonly beforeMove?: (() => Promise<void>) | undefined;
}

/** Most attempts to create a folder for a file while others remove it. */
const MAX_MOVE_ATTEMPTS = 8;

/**
 * Writes a file completely or not at all: first under a temporary name, then down to the disk, and only then under its
 * own. Replaces an existing file, or a symbolic link at the end of the path; follows no link on the way. A file that
 * must be new gets its name by a link, so that only one of two concurrent writes succeeds.
 *
 * Not covered: a folder that is swapped for a link between the check and the move; a killed process, and a disk that
 * fails, leave the temporary file as an orphan.
 *
 * @returns the status of the written file; its new name changes neither inode nor size nor time of modification
 * @throws Error of a system call (`EEXIST` if the path exists but must be new), or errors of `chunks`; then nothing of
 *   the file remains
 */
export async function writeWholeFile(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  place: FilePlace,
): Promise<BigIntStats> {
  const file = await openNewFile(place);
  try {
    let status: BigIntStats;
    try {
      if (place.owner !== undefined) await file.chown(place.owner.uid, place.owner.gid);
      if (place.mode !== undefined) await file.chmod(place.mode & 0o777);
      for await (const chunk of chunks) await file.writeFile(chunk);
      // Before the file gets its name: a power cut could leave the name with zeros.
      await file.datasync();
      status = await file.stat({ bigint: true });
    } finally {
      await file.close();
    }
    await place.beforeMove?.();
    await moveIntoPlace(place);
    return status;
  } catch (error) {
    await unlink(place.temporaryPath).catch(() => undefined);
    throw error;
  }
}

/**
 * Creates a folder and its parents, like `mkdir -p`, but through no symbolic link.
 *
 * @param within a folder above it, which must exist
 * @throws Error if a link leads there, and of a system call
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
    // Another process was first; a link without a target fails in the next call.
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}

/** Whether a path exists. @throws Error if a link leads there, and of a system call */
export async function isRealFolder(folder: string): Promise<boolean> {
  try {
    if ((await realpath(folder)) === folder) return true;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
  throw new Error(`${folder} is behind a link.`);
}

async function openNewFile({ temporaryPath, root }: FilePlace): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  try {
    return await open(temporaryPath, flags);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    await makeFolder(dirname(temporaryPath), root); // somebody else removed the folder
    return open(temporaryPath, flags);
  }
}

async function moveIntoPlace({ path, temporaryPath, root, onFolderMade, isNew }: FilePlace) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await makeFolder(dirname(path), root, onFolderMade);
      if (isNew !== true) return await rename(temporaryPath, path);
      await link(temporaryPath, path);
      return await unlink(temporaryPath);
    } catch (error) {
      // The empty folder was removed meanwhile.
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
    // Some file systems cannot; the file exists all the same.
  } finally {
    await handle?.close();
  }
}
