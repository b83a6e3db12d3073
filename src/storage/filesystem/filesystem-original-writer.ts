import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { dirname, join, normalize, sep } from 'node:path';
import type {
  OriginalWriteOptions,
  OriginalWriter,
} from '../../pipeline/originals/original-writer.ts';
import { writeWholeFile } from './whole-file.ts';

/**
 * Writes originals into the folder that `FilesystemOrigin` reads. A file is written in the top of the
 * folder, under a name that is the key of no original, and gets its own when all of it is on the disk
 * (`writeWholeFile`).
 *
 * Not covered: a file system of its own below the folder, into which no file can be moved; what is left
 * behind by a process that is killed (`.incoming-…`).
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
    options: OriginalWriteOptions,
  ): Promise<void> {
    options.signal.throwIfAborted();
    const path = this.#prefix + key;
    if (normalize(path) !== path) throw new Error(`${key} is not a key that is written straight.`);
    const temporaryPath = join(this.#root, `.incoming-${randomBytes(16).toString('hex')}`);
    await writeWholeFile(watch(chunks, options), { path, temporaryPath, root: this.#root });
    await syncFolder(dirname(path));
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

/** The same bytes, which end with the signal and whose writing is told. */
async function* watch(
  chunks: AsyncIterable<Uint8Array>,
  { signal, onProgress }: OriginalWriteOptions,
): AsyncGenerator<Uint8Array> {
  let writtenBytes = 0;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
    writtenBytes += chunk.length;
    onProgress?.(writtenBytes);
  }
  signal.throwIfAborted();
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
