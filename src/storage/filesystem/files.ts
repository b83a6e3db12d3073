import { type BigIntStats, close, constants, fstat, open, read, readlinkSync } from 'node:fs';
import {
  type FileHandle,
  link,
  mkdir,
  open as openHandle,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const MISSING: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'EISDIR',
  'ELOOP', // a symbolic link, rejected by O_NOFOLLOW
  'ENXIO', // a socket, or a pipe without a reader
]);

export function systemCodeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Whether an error means that a path is not a regular file. */
export function isMissingFile(error: unknown): boolean {
  return MISSING.has(systemCodeOf(error));
}

/** Returns the result of a system call; `undefined` if `isMissingFile`. */
export async function unlessMissing<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}

export interface OpenedFile {
  /** A plain number is cheaper than a `FileHandle`. */
  readonly descriptor: number;
  readonly status: BigIntStats;
}

/** A file may be replaced between its opening and the check of its path. */
const MAX_ATTEMPTS = 3;

const readDescriptor = promisify(read);
const readStatus = promisify(fstat);

/**
 * Opens a regular file without following links; returns `undefined` for other kinds.
 * @param path absolute and normalized: no `..`, `.` or `//`
 * @throws errors of `open` of node:fs
 */
export async function openRegularFile(path: string): Promise<OpenedFile | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    // O_NONBLOCK: a named pipe must not hang the open.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const opened = await openAndStat(path, flags);
    const { descriptor } = opened;
    try {
      if (opened.status.isFile() && (await findOpenedPath(opened, path)) === path) return opened;
      const { nlink } = await readStatus(descriptor, { bigint: true });
      closeFile(opened);
      if (nlink !== 0n) return undefined; // not replaced: retrying would not help
    } catch (error) {
      closeFile({ descriptor });
      throw error;
    }
  }
  return undefined;
}

/** Opens a file and reads its status, with callbacks: promises would take a seventh more CPU. */
function openAndStat(path: string, flags: number): Promise<OpenedFile> {
  return new Promise((resolve, reject) => {
    open(path, flags, (openError, descriptor) => {
      if (openError !== null) return reject(openError);
      fstat(descriptor, { bigint: true }, (error, status) => {
        if (error === null) return resolve({ descriptor, status });
        closeFile({ descriptor });
        reject(error);
      });
    });
  });
}

export function etagOfFile({ size, mtimeNs }: Pick<BigIntStats, 'size' | 'mtimeNs'>): string {
  return `${size.toString(36)}-${mtimeNs.toString(36)}`;
}

/** Returns fewer bytes if the file was truncated. */
export async function readBytes(
  { descriptor }: Pick<OpenedFile, 'descriptor'>,
  first: number,
  count: number,
): Promise<Buffer> {
  // Not from Node's pool: cached bytes would retain 8 KiB of others.
  const bytes = Buffer.allocUnsafeSlow(count);
  let filled = 0;
  while (filled < count) {
    const { bytesRead } = await readDescriptor(
      descriptor,
      bytes,
      filled,
      count - filled,
      first + filled,
    );
    if (bytesRead === 0) return bytes.subarray(0, filled);
    filled += bytesRead;
  }
  return bytes;
}

export function closeFile(
  { descriptor }: Pick<OpenedFile, 'descriptor'>,
  onClosed: () => void = () => undefined,
): void {
  close(descriptor, onClosed);
}

async function findOpenedPath({ descriptor, status }: OpenedFile, path: string): Promise<string> {
  try {
    // Synchronous, since waking a thread would cost more.
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // Without /proc. Not covered: a directory that is swapped for a link and back.
    const real = await realpath(path);
    const there = await stat(real, { bigint: true });
    return there.ino === status.ino && there.dev === status.dev ? real : '';
  }
}

export interface WriteTarget {
  readonly path: string;
  /** Unique path for the unfinished file, on the same file system. */
  readonly temporaryPath: string;
  /** Existing directory above both; never created, since its disk may be unmounted. */
  readonly root: string;
  readonly onDirectoryMade?: (() => void) | undefined;
  /** Whether the path must not exist yet. Omit to replace an existing file. */
  readonly isNew?: boolean | undefined;
  readonly mode?: number | undefined;
  /** User and group of the file, if the process may set them. Omit for those of the process. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  /** Throws if the complete file must no longer be moved to its path. */
  readonly beforeMove?: (() => Promise<void>) | undefined;
}

/** Other processes remove empty directories, and with them the directory of the new file. */
const MAX_MOVE_ATTEMPTS = 8;

/**
 * Writes a file completely or not at all: under a temporary name, flushed to the disk, then moved to its path. Replaces
 * an existing file or symbolic link at the path; follows no other links. A new file gets its name by a hard link, so
 * that only one of two concurrent writes succeeds.
 *
 * Not covered: a directory that is swapped for a link between check and move; the temporary file of a killed process.
 *
 * @returns the status of the written file; renaming changes neither inode nor size nor modification time
 * @throws Error of a system call (`EEXIST` if the path exists but must be new), or errors of `chunks`, without a file
 */
export async function writeAtomically(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  target: WriteTarget,
): Promise<BigIntStats> {
  const file = await openNewFile(target);
  try {
    let status: BigIntStats;
    try {
      if (target.owner !== undefined) {
        await file.chown(target.owner.uid, target.owner.gid).catch((error) => {
          if (systemCodeOf(error) !== 'EPERM') throw error;
        });
      }
      if (target.mode !== undefined) await file.chmod(target.mode & 0o777);
      for await (const chunk of chunks) await file.writeFile(chunk);
      // Flush before the rename: otherwise a power cut could leave a file of zeros.
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
 * Creates a directory and its parents below `within`, like `mkdir -p`.
 * @throws Error if the path contains a link, and errors of system calls
 */
export async function makeDirectory(
  directory: string,
  within: string,
  onMade: () => void = () => undefined,
): Promise<void> {
  if (await isRealDirectory(directory)) return;
  if (directory === within) throw new Error(`The directory ${within} is missing.`);
  await makeDirectory(dirname(directory), within, onMade);
  try {
    await mkdir(directory);
    onMade();
  } catch (error) {
    // Another process created it first; for a dangling link, the next call fails.
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}

/** Whether a directory exists. @throws Error if its path contains a link, and errors of system calls */
export async function isRealDirectory(directory: string): Promise<boolean> {
  try {
    if ((await realpath(directory)) === directory) return true;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return false;
  }
  throw new Error(`The path ${directory} contains a symbolic link.`);
}

async function openNewFile({ temporaryPath, root }: WriteTarget): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  try {
    return await openHandle(temporaryPath, flags);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    await makeDirectory(dirname(temporaryPath), root); // another process removed the directory
    return openHandle(temporaryPath, flags);
  }
}

async function moveIntoPlace({ path, temporaryPath, root, onDirectoryMade, isNew }: WriteTarget) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await makeDirectory(dirname(path), root, onDirectoryMade);
      if (isNew !== true) return await rename(temporaryPath, path);
      await link(temporaryPath, path);
      return await unlink(temporaryPath);
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT' || attempt === MAX_MOVE_ATTEMPTS) throw error;
    }
  }
}

export async function syncDirectory(directory: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await openHandle(directory, constants.O_RDONLY);
    await handle.sync();
  } catch {
    // Some file systems cannot flush a directory; the file exists all the same.
  } finally {
    await handle?.close();
  }
}
