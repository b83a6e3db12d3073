import { constants, type Stats } from 'node:fs';
import { type FileHandle, link, mkdir, open, realpath, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/** Where a file comes to be. */
export interface FilePlace {
  readonly path: string;
  /** Where it is written first: on the same file system, under a name that no one else takes. */
  readonly temporaryPath: string;
  /** A folder above both, which must exist: that of an unmounted disk is not made anew. */
  readonly root: string;
  /** Called for each folder that is made for it. */
  readonly onFolderMade?: (() => void) | undefined;
  /** Called where the temporary file could not be removed after a failure: the disk fails as a whole. */
  readonly onLeft?: (() => void) | undefined;
  /** Whether nothing may be there yet; else what is there is replaced. */
  readonly isNew?: boolean | undefined;
  /** What is there, if those who have access to it shall have access to the new file, and no one else meanwhile. */
  readonly accessAs?: Stats | undefined;
}

/** Bits of a mode that say who may do what; the same without a group. */
const PERMISSIONS = 0o777;
const UNGROUPED_PERMISSIONS = 0o707;

/** How often a folder is made for a file while others remove it. */
const MAX_MOVE_ATTEMPTS = 8;

/**
 * Writes a file that is whole, or not there: under a temporary name first, then down to the disk, and only
 * then under its own. What was there is replaced; a symbolic link at its end too, and none is followed on
 * the way. One that must be new gets its name by a link, which fails where there is one, so that of two at once
 * only one is written.
 *
 * Not covered: a folder that is swapped for a link between the check and the move; a process that is killed
 * leaves the temporary file behind.
 *
 * @throws Error of a system call (`EEXIST` where it is not new), or what `chunks` throws; then nothing is left of the
 *   file
 */
export async function writeWholeFile(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  place: FilePlace,
): Promise<void> {
  const file = await openNewFile(place);
  try {
    try {
      if (place.accessAs !== undefined) await copyAccess(file, place.accessAs);
      for await (const chunk of chunks) await file.writeFile(chunk);
      // Before it gets its name: after a power cut there would be the name, and zeros.
      await file.datasync();
    } finally {
      await file.close();
    }
    await moveIntoPlace(place);
  } catch (error) {
    await unlink(place.temporaryPath).catch((reason: unknown) => {
      if (systemCodeOf(reason) !== 'ENOENT') place.onLeft?.();
    });
    throw error;
  }
}

/**
 * Makes a folder with all above it, like `mkdir -p`, but through no symbolic link.
 *
 * @param within a folder above it, which must exist
 * @param onMade called for each folder that is made
 * @throws Error if a link leads there, and of a system call
 */
export async function makeFolder(
  folder: string,
  within: string,
  onMade: () => void = () => undefined,
): Promise<void> {
  if (await isRealFolder(folder)) return;
  if (folder === within) throw new Error(`There is no folder ${within} any more.`);
  await makeFolder(dirname(folder), within, onMade);
  try {
    await mkdir(folder);
    onMade();
  } catch (error) {
    // Another was first; a link without a target fails whatever comes next.
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * Whether something is at a path, and no link on the way to it.
 *
 * @throws Error if a link leads there, and of a system call
 */
export async function isRealFolder(folder: string): Promise<boolean> {
  try {
    if ((await realpath(folder)) === folder) return true;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
  throw new Error(`${folder} is behind a link.`);
}

async function openNewFile({ temporaryPath, root, accessAs }: FilePlace): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  const mode = accessAs === undefined ? 0o666 : 0o600;
  try {
    return await open(temporaryPath, flags, mode);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    await makeFolder(dirname(temporaryPath), root); // removed behind our back
    return open(temporaryPath, flags, mode);
  }
}

/** A file of another user stays theirs where we may give it away; else it becomes ours, and is for no other group. */
async function copyAccess(file: FileHandle, { mode, uid, gid }: Stats): Promise<void> {
  const keepGroup = () => file.chown(-1, gid);
  await file
    .chown(uid, gid)
    .catch(keepGroup)
    .catch(() => undefined);
  const { gid: groupNow } = await file.stat();
  await file.chmod(mode & (groupNow === gid ? PERMISSIONS : UNGROUPED_PERMISSIONS));
}

async function moveIntoPlace({ path, temporaryPath, root, onFolderMade, isNew }: FilePlace) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await makeFolder(dirname(path), root, onFolderMade);
      if (isNew !== true) return await rename(temporaryPath, path);
      await link(temporaryPath, path);
      return await unlink(temporaryPath);
    } catch (error) {
      // The folder was empty until now, and was cleared away meanwhile.
      if (systemCodeOf(error) !== 'ENOENT' || attempt === MAX_MOVE_ATTEMPTS) throw error;
    }
  }
}
