import { type BigIntStats, close, constants, fstat, open, read, readlinkSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { promisify } from 'node:util';

/** File opened for reading. Close it with `closeFile`. */
export interface OpenedFile {
  /** A plain number is cheaper than a `FileHandle`. */
  readonly descriptor: number;
  readonly status: BigIntStats;
}

/** Maximum number of attempts; a file may be replaced between its opening and the check of its path. */
const MAX_ATTEMPTS = 3;

const openDescriptor = promisify(open);
const readDescriptor = promisify(read);
const readStatus = promisify(fstat);

/**
 * Opens a regular file at exactly this path, without links. The kernel reports the path of the opened file, by a
 * synchronous call, which costs less than waking a thread; systems without /proc resolve the path again.
 *
 * @param path absolute and normalized: no `..`, `.` or `//`
 * @returns `undefined` for other kinds of files
 * @throws errors of `open` of node:fs
 */
export async function openRegularFile(path: string): Promise<OpenedFile | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    // O_NONBLOCK: a named pipe must not hang the open.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const descriptor = await openDescriptor(path, flags);
    try {
      const opened = { descriptor, status: await readStatus(descriptor, { bigint: true }) };
      if (opened.status.isFile() && (await findOpenedPath(opened, path)) === path) return opened;
      const { nlink } = await readStatus(descriptor, { bigint: true });
      closeFile(opened);
      if (nlink !== 0n) return undefined; // the file was not replaced
    } catch (error) {
      closeFile({ descriptor });
      throw error;
    }
  }
  return undefined;
}

/** Returns a tag of the content of a file, unique at its path. */
export function fileEtagOf({ size, mtimeNs }: Pick<BigIntStats, 'size' | 'mtimeNs'>): string {
  return `${size.toString(36)}-${mtimeNs.toString(36)}`;
}

/** Reads bytes of a file into memory; fewer if the file was truncated. */
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

/** Closes a file that was only read, in the background. */
export function closeFile(
  { descriptor }: Pick<OpenedFile, 'descriptor'>,
  onClosed: () => void = () => undefined,
): void {
  close(descriptor, onClosed);
}

async function findOpenedPath({ descriptor, status }: OpenedFile, path: string): Promise<string> {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // Not covered: a folder that is swapped for a link and back.
    const real = await realpath(path);
    const there = await stat(real, { bigint: true });
    return there.ino === status.ino && there.dev === status.dev ? real : '';
  }
}
