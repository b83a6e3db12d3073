import { type BigIntStats, close, constants, fstat, open, read, readlinkSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A file that was opened for reading; to be closed with `closeFile`. */
export interface OpenedFile {
  /** A plain number: a `FileHandle` is an object of two sides, with promises of its own. */
  readonly descriptor: number;
  readonly status: BigIntStats;
}

/** A file may be replaced in the moment between its opening and the look at its path. */
const MAX_ATTEMPTS = 3;

const openDescriptor = promisify(open);
const readDescriptor = promisify(read);
const readStatus = promisify(fstat);

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
  findPath: (opened: OpenedFile, path: string) => string | Promise<string> = findOpenedPath,
): Promise<OpenedFile | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    // O_NONBLOCK: a named pipe must not hang the open.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const descriptor = await openDescriptor(path, flags);
    try {
      const opened = { descriptor, status: await readStatus(descriptor, { bigint: true }) };
      if (opened.status.isFile() && (await findPath(opened, path)) === path) return opened;
      const { nlink } = await readStatus(descriptor, { bigint: true });
      closeFile(opened);
      if (nlink !== 0n) return undefined; // not replaced meanwhile
    } catch (error) {
      closeFile({ descriptor });
      throw error;
    }
  }
  return undefined;
}

/** What tells the content of a file from any other that was at its path: without quotes. */
export function fileEtagOf({ size, mtimeNs }: Pick<BigIntStats, 'size' | 'mtimeNs'>): string {
  return `${size.toString(36)}-${mtimeNs.toString(36)}`;
}

/**
 * Reads bytes of a file into memory, in one call where the system gives them at once.
 *
 * @param first where they begin, counted from 0
 * @returns fewer where the file has fewer by now
 * @throws what `read` of node:fs throws
 */
export async function readBytes(
  { descriptor }: Pick<OpenedFile, 'descriptor'>,
  first: number,
  count: number,
): Promise<Buffer> {
  // Not of Node's pool: they live on in a cache, and would hold 8 KiB of others.
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

/**
 * Closes a file that was only read, in the background: no result depends on its end.
 *
 * @param onClosed called when the disk is done with it
 */
export function closeFile(
  { descriptor }: Pick<OpenedFile, 'descriptor'>,
  onClosed: () => void = () => undefined,
): void {
  close(descriptor, onClosed);
}

function findOpenedPath(opened: OpenedFile, path: string): string | Promise<string> {
  try {
    return readlinkSync(`/proc/self/fd/${opened.descriptor}`);
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
