import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaError } from '../../contract/errors.ts';
import {
  type OriginalWriteOptions,
  type OriginalWriter,
  untilStopped,
} from '../../pipeline/originals/original-writer.ts';
import { fileEtagOf } from './opened-file.ts';
import type { RootFolder } from './root-folder.ts';
import { systemCodeOf, unlessMissing } from './system-errors.ts';
import { syncFolder, writeWholeFile } from './whole-file.ts';

/**
 * Codes for another file in the way of a written one: at a path that must be free, above it (`a` of `a/b`), or below it,
 * where the path is a folder.
 */
const IN_THE_WAY: ReadonlySet<unknown> = new Set(['EEXIST', 'ENOTDIR', 'EISDIR']);

/**
 * Writes originals into the folder that `FilesystemOrigin` reads. A file is written at the top of the folder, under a
 * name that is not an original's key, and gets its own name once it is completely on the disk (`writeWholeFile`).
 *
 * Not covered: a separate file system below the folder, into which no file can be moved; one without hard links, where
 * nothing can be written that must be new; orphans of a killed process (`.incoming-…`).
 */
export class FilesystemOriginalWriter implements OriginalWriter {
  readonly #root: RootFolder;
  /** A file appears as a whole, so parts cannot be completed by others. */
  readonly writePart = undefined;

  constructor(root: RootFolder) {
    this.#root = root;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string> {
    options.signal.throwIfAborted();
    const path = this.#pathOf(key);
    await this.#checkRoot();
    const root = this.#root.path;
    const temporaryPath = join(root, `.incoming-${randomBytes(16).toString('hex')}`);
    const place = { path, temporaryPath, root, isNew: options.isNew };
    let status: BigIntStats;
    try {
      status = await writeWholeFile(untilStopped(chunks, options.signal), place);
    } catch (error) {
      if (!IN_THE_WAY.has(systemCodeOf(error))) throw error;
      throw new MediaError('MEDIA_EXISTS', { cause: error });
    }
    await syncFolder(dirname(path));
    return fileEtagOf(status);
  }

  /** Whether anything exists at the key: a link or a folder is in the way, too. */
  async has(key: string): Promise<boolean> {
    await this.#checkRoot();
    return (await unlessMissing(lstat(this.#pathOf(key)))) !== undefined;
  }

  /** Returns 0: each piece is written before the next one is taken. */
  heldBytesOf(): number {
    return 0;
  }

  #pathOf(key: string): string {
    const path = this.#root.pathOf(key);
    if (path === undefined) throw new Error(`${key} is not a key that is written straight.`);
    return path;
  }

  /** Rejects writes if the disk is not mounted: an original would be written to the disk below. */
  async #checkRoot(): Promise<void> {
    if (await this.#root.isThere()) return;
    throw new Error(`${this.#root.path}, or the file STORAGE_MARKER in it, is gone.`);
  }
}
