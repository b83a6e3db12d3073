import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, normalize, sep } from 'node:path';
import type {
  OriginalWriteOptions,
  OriginalWriter,
} from '../../pipeline/originals/original-writer.ts';
import { makeFolder } from './real-folder.ts';

/**
 * Writes originals into the folder that `FilesystemOrigin` reads. A file is written in the top of the
 * folder, under a name that is the key of no original, and gets its own when all of it is on the disk.
 *
 * No symbolic link is followed below the folder: neither to make one on the way, nor at its end, where a
 * link is replaced. Not covered: a folder that is swapped for a link between the check and the move; a
 * file system of its own below the folder, into which no file can be moved; what is left behind by a
 * process that is killed (`.incoming-…`).
 */
export class FilesystemOriginalWriter implements OriginalWriter {
  readonly #root: string;
  /** What stands before every key: the root with one separator behind it. */
  readonly #prefix: string;

  /** @param root the folder; a real path, see `createFilesystemOriginalWriter` */
  constructor(root: string) {
    this.#root = root;
    this.#prefix = root.endsWith(sep) ? root : root + sep;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    { signal, onProgress }: OriginalWriteOptions,
  ): Promise<void> {
    signal.throwIfAborted();
    const target = this.#prefix + key;
    if (normalize(target) !== target) {
      throw new Error(`${key} is not a key that is written straight.`);
    }
    const incoming = join(this.#root, `.incoming-${randomBytes(16).toString('hex')}`);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const file = await open(incoming, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    try {
      try {
        let writtenBytes = 0;
        for await (const chunk of chunks) {
          signal.throwIfAborted();
          await file.writeFile(chunk);
          writtenBytes += chunk.length;
          onProgress?.(writtenBytes);
        }
        // Before it gets its name: after a power cut there would be the name, and zeros.
        await file.sync();
      } finally {
        await file.close();
      }
      signal.throwIfAborted();
      await makeFolder(dirname(target), this.#root);
      await rename(incoming, target);
    } catch (error) {
      await unlink(incoming).catch(() => undefined);
      throw error;
    }
    await syncFolder(dirname(target));
  }
}

/**
 * Opens a folder to put originals into.
 *
 * @throws Error if there is no such folder
 */
export async function createFilesystemOriginalWriter(
  folder: string,
): Promise<FilesystemOriginalWriter> {
  const root = await realpath(folder);
  if (!(await stat(root)).isDirectory()) throw new Error(`${root} is not a folder`);
  return new FilesystemOriginalWriter(root);
}

/** The name of a file is a fact of its folder. */
async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, constants.O_RDONLY);
    await handle.sync();
  } catch {
    // Some file systems cannot; the file is there all the same.
  } finally {
    await handle?.close();
  }
}
