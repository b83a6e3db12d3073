import { createReadStream } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import type { Opened, OriginListing, Source } from '../../pipeline/ports.ts';
import { clampRange, readLastModified } from '../origin-object.ts';
import {
  closeFile,
  etagOfFile,
  isMissingFile,
  type OpenedFile,
  openRegularFile,
  readBytes,
  unlessMissing,
} from './files.ts';
import type { RootDirectory } from './root-directory.ts';
import { traverseDirectory } from './traverse.ts';

/** Bytes per read of a passthrough: twice Node's default, at 0.75 of its CPU for 500 MiB (measured). */
const CHUNK_BYTES = 128 * 1024;

/** Maximum size of an original that is read at once: a stream would cost more than the read. */
const MAX_AT_ONCE_BYTES = 1024 * 1024;

/**
 * Opens originals below a directory, by origin key. A key cannot leave the directory: its path must be normalized and
 * equal the real path of the opened file, which rejects symbolic links. Only regular files are served.
 *
 * Not covered: hard links and bind mounts, since a process that can create them can write the directory anyway; names
 * that differ only in case or normalization, if the file system ignores these; a replacement with the same size and
 * modification time, which counts as unchanged.
 */
export function createFilesystemOrigin(root: RootDirectory): Source {
  return {
    identity: 'tag',
    open: async (key, { signal, range, isBuffered = false }) => {
      signal.throwIfAborted();
      const path = root.pathOf(key);
      if (path === undefined) throw new MediaError('UNKNOWN_MEDIA');
      let file: OpenedFile | undefined;
      try {
        file = await openRegularFile(path);
        if (file === undefined) throw new MediaError('UNKNOWN_MEDIA');
        signal.throwIfAborted();
        const { status } = file;
        const sizeBytes = Number(status.size);
        const part = clampRange(range, sizeBytes);
        return {
          sizeBytes,
          etag: etagOfFile(status),
          lastModified: readLastModified(new Date(Number(status.mtimeMs))),
          part: range && part,
          isExclusive: true,
          body: await openBody(file, part.first, part.last - part.first + 1, isBuffered),
        };
      } catch (error) {
        if (file !== undefined) closeFile(file);
        signal.throwIfAborted();
        if (error instanceof MediaError) throw error;
        const isMissing = isMissingFile(error) && (await root.isMounted());
        throw new MediaError(isMissing ? 'UNKNOWN_MEDIA' : 'ORIGIN_ERROR', { cause: error });
      }
    },
  };
}

/** Opens a body, which closes the file. Bodies that are kept in memory are read at once, or as one chunk. */
async function openBody(
  file: OpenedFile,
  first: number,
  count: number,
  isBuffered: boolean,
): Promise<Opened['body']> {
  if (isBuffered && count <= MAX_AT_ONCE_BYTES) {
    const bytes = await readBytes(file, first, count);
    closeFile(file);
    return bytes;
  }
  // Ends at the size at opening, in case the file grows.
  return createReadStream('', {
    fd: file.descriptor,
    start: first,
    end: Math.max(0, first + count - 1),
    highWaterMark: isBuffered ? count : CHUNK_BYTES,
  });
}

/**
 * Lists regular files, except in directories without read permission. Dotfiles are included, symbolic links are not.
 * Not covered: a directory that is swapped during its listing; its new entries could not be read.
 */
export function createFilesystemListing(root: RootDirectory): OriginListing {
  return {
    list: async (prefix, visit, signal) => {
      try {
        // `resolve` removes a trailing slash, with which `lstat` would follow a link.
        const directory = resolve(root.path, prefix);
        const status = await unlessMissing(lstat(directory));
        // An unmounted disk must not look empty.
        if (status === undefined && !(await root.isMounted()))
          throw new Error('The storage directory is missing.');
        if (!status?.isDirectory()) return;
        for await (const entry of traverseDirectory(directory, signal)) {
          if (entry.kind !== 'file') continue;
          const key = relative(root.path, entry.path).replaceAll(sep, '/');
          if (!(await visit({ key, sizeBytes: entry.sizeBytes }))) return;
        }
      } catch (error) {
        signal.throwIfAborted();
        throw new MediaError('ORIGIN_ERROR', { cause: error });
      }
    },
  };
}
