import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import type { Origin, OriginBytes, OriginObject, ReadOptions } from '../../pipeline/ports.ts';
import { clampRange, readLastModified } from '../origin-object.ts';
import {
  closeFile,
  fileEtagOf,
  type OpenedFile,
  openRegularFile,
  readBytes,
} from './opened-file.ts';
import { RootFolder } from './root-folder.ts';
import type { StorageMarker } from './storage-marker.ts';
import { isMissingFile } from './system-errors.ts';

/**
 * Bytes read at a time of what is passed on as it is: twice as many as Node would read, at 0.75 of the CPU for
 * 500 MiB; a client that does not read holds four times as much (`npm run test:front`).
 */
const CHUNK_BYTES = 128 * 1024;

/**
 * What goes into memory is read in one piece: calls, copies and garbage are what reading costs. Up to this many
 * bytes, no stream is made for it, since that would cost more than the reading. The memory budget lets in originals
 * of this size without asking, too.
 */
const MAX_AT_ONCE_BYTES = 1024 * 1024;

/**
 * Originals below a folder, laid out by origin key.
 *
 * A key cannot leave the folder: its segments were validated one by one; a path that is not written
 * straight (`..`, `.`, two slashes) is refused all the same, so that a file has one key; the file is
 * opened without following a symbolic link; and the real path of what was opened must be the very path
 * that was asked for, so that a link anywhere in between is refused as well. Only regular files are
 * served.
 *
 * Not covered: hard links and bind mounts (they are regular paths; a process that can make them can write
 * the folder anyway); names that differ only in case or normalization on file systems that do not tell
 * them apart. A file that is replaced by one of the same size and the same time of change is taken for
 * the same.
 */
export class FilesystemOrigin implements Origin {
  readonly #root: RootFolder;

  readonly #marker: StorageMarker | undefined;

  constructor(root: RootFolder, marker?: StorageMarker) {
    this.#root = root;
    this.#marker = marker;
  }

  async read(key: string, options: ReadOptions): Promise<OriginObject> {
    return this.#open(key, options, ({ descriptor }, first, count) => ({
      body: streamOf(descriptor, first, count, CHUNK_BYTES),
    }));
  }

  async readForMemory(key: string, options: ReadOptions): Promise<OriginObject | OriginBytes> {
    return this.#open<Pick<OriginObject, 'body'> | Pick<OriginBytes, 'bytes'>>(
      key,
      options,
      async (file, first, count) => {
        if (count > MAX_AT_ONCE_BYTES)
          return { body: streamOf(file.descriptor, first, count, count) };
        const bytes = await readBytes(file, first, count);
        closeFile(file);
        return { bytes };
      },
    );
  }

  /** @param take takes the file over, and what of it is wanted: so many bytes, from one on */
  async #open<Content extends object>(
    key: string,
    { signal, range }: ReadOptions,
    take: (file: OpenedFile, first: number, count: number) => Content | Promise<Content>,
  ): Promise<Omit<OriginObject, 'body'> & Content> {
    signal.throwIfAborted();
    const path = this.#root.pathOf(key);
    if (path === undefined) throw new MediaError('UNKNOWN_MEDIA');
    let file: OpenedFile | undefined;
    try {
      file = await openRegularFile(path);
      if (file === undefined) throw new MediaError('UNKNOWN_MEDIA');
      signal.throwIfAborted();
      const { status } = file;
      const sizeBytes = Number(status.size);
      const { first, last } = clampRange(range, sizeBytes);
      return {
        sizeBytes,
        etag: fileEtagOf(status),
        lastModified: readLastModified(new Date(Number(status.mtimeMs))),
        storedContentType: undefined,
        ...(await take(file, first, last - first + 1)),
      };
    } catch (error) {
      if (file !== undefined) closeFile(file);
      throw signal.aborted ? signal.reason : await this.#translate(error);
    }
  }

  async #translate(error: unknown): Promise<unknown> {
    if (error instanceof MediaError) return error;
    if (!isMissingFile(error)) return new MediaError('ORIGIN_ERROR', { cause: error });
    // A folder that is gone (an unmounted disk) is a failing origin, not a missing object.
    const isRootThere = await stat(this.#root.path).then(
      (status) => status.isDirectory(),
      () => false,
    );
    const isOurs = isRootThere && ((await this.#marker?.look()) ?? true);
    return new MediaError(isOurs ? 'UNKNOWN_MEDIA' : 'ORIGIN_ERROR', { cause: error });
  }
}

/** Ends with the size that was seen: a file that grows meanwhile is not sent beyond it. Closes the file, too. */
function streamOf(descriptor: number, first: number, count: number, chunkBytes: number): Readable {
  return createReadStream('', {
    fd: descriptor,
    start: first,
    end: Math.max(0, first + count - 1),
    highWaterMark: chunkBytes,
  });
}

/**
 * @param marker what must be in it, or else nothing that is missing is known to be
 * @throws Error if there is no such folder
 */
export async function createFilesystemOrigin(
  folder: string,
  marker?: StorageMarker,
): Promise<FilesystemOrigin> {
  return new FilesystemOrigin(await RootFolder.open(folder), marker);
}
