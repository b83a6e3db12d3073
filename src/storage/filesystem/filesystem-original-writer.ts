import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type {
  OriginalWriteOptions,
  OriginalWriter,
} from '../../pipeline/originals/original-writer.ts';
import { RootFolder } from './root-folder.ts';
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
  readonly #root: RootFolder;

  constructor(root: RootFolder) {
    this.#root = root;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<void> {
    options.signal.throwIfAborted();
    const path = this.#root.pathOf(key);
    if (path === undefined) throw new Error(`${key} is not a key that is written straight.`);
    const root = this.#root.path;
    const temporaryPath = join(root, `.incoming-${randomBytes(16).toString('hex')}`);
    await writeWholeFile(watch(chunks, options), { path, temporaryPath, root });
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
  return new FilesystemOriginalWriter(await RootFolder.open(folder));
}

/** The same bytes, which end with the signal; progress follows what is written of them. */
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
