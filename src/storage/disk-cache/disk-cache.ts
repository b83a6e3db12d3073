import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, realpath, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unlessAborted } from '../../pipeline/abort.ts';
import {
  type Log,
  type ResultAddress,
  type ResultStore,
  type StoredResult,
  StoreStalled,
  type StoreUsage,
} from '../../pipeline/ports.ts';
import { makeFolder } from '../filesystem/real-folder.ts';
import { GentlePace } from '../filesystem/throttle.ts';
import { isMissingFile, systemCodeOf } from '../missing-file.ts';
import { formatResultFile, MAX_RESULT_FILE_BYTES, parseResultFile } from '../result-file.ts';
import { checkPathPrefix, storedPathOf } from '../stored-path.ts';
import { FolderBound } from './disk-quota.ts';
import { removeByPrefix } from './folder-removal.ts';
import { FOLDER_COST_BYTES, fileCostBytes } from './folder-scan.ts';
import { IncomingFolder } from './incoming-folder.ts';
import { RemovalWatch } from './removal-watch.ts';

/** What a store of renderings on a disk is made from. */
export interface FilesystemResultStoreOptions {
  /** Of its own: all in it may be removed. It is made if it is missing. */
  readonly folder: string;
  /** Of disk, in bytes; see `FolderBound`. */
  readonly maxBytes: number;
  readonly log: Log;
  /** `false` for a guest, who leaves it to the service to make room, and to clear up after the dead. */
  readonly isUpkept?: boolean | undefined;
  /** Time for each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number;
}

/**
 * Time after which a disk is taken to hang, in milliseconds. A removal may take minutes, but each of its steps is
 * a few system calls, and two seconds are too long for a read already.
 */
const STALL_TIMEOUT_MS = 10_000;

/**
 * Largest rendering that is kept, as a part of the whole: one must not drive out many others, and must
 * have room between two surveys.
 */
const MAX_RESULT_PART = 0.05;

/** Age from which a read renews the time of last use, in milliseconds: it costs a write of metadata. */
const TOUCH_AFTER_MS = 60 * 60 * 1000;

/** How often a folder is made for a file while others remove it. */
const MAX_MOVE_ATTEMPTS = 8;

/**
 * Renderings in a folder: `results/` has them by `resultPath`, `incoming/` what is being written. A file
 * gets its name when it is whole and on the disk, so no other is ever seen under it; should a disk lose
 * bytes all the same, the sum in it tells (`parseResultFile`). The time of its last change is the time
 * of its last use, to an hour; `FolderBound` removes by it. Several processes may share a folder.
 *
 * A rendering that finds no room, or whose name is too long for the file system, is not kept, and that
 * is no error: a full disk costs new ones, never those that are there.
 *
 * Symbolic links are not followed, wherever below the folder they are. Not covered: a folder that is
 * swapped for a link between the check and the move; what a read finds through a link to a folder,
 * which is served if it is the very rendering that was asked for.
 */
export class FilesystemResultStore implements ResultStore {
  readonly #results: string;
  readonly #incoming: IncomingFolder;
  readonly #bound: FolderBound;
  readonly #maxFileBytes: number;
  readonly #removals: RemovalWatch;
  /** One for all removals: however many there are, they take their part of the main thread together. */
  readonly #pace = new GentlePace();

  /** @param folder a real path, with `results` and `incoming` in it; see `createFilesystemResultStore` */
  constructor(
    folder: string,
    { maxBytes, log, isUpkept, stallTimeoutMs = STALL_TIMEOUT_MS }: FilesystemResultStoreOptions,
  ) {
    this.#removals = new RemovalWatch(stallTimeoutMs);
    this.#results = join(folder, 'results');
    this.#incoming = new IncomingFolder(join(folder, 'incoming'));
    this.#maxFileBytes = Math.min(MAX_RESULT_PART * maxBytes, MAX_RESULT_FILE_BYTES);
    this.#bound = new FolderBound({
      folder: this.#results,
      maxBytes,
      log,
      isUpkept,
      beforeSurvey: (signal) => this.#incoming.removeAbandoned(signal),
    });
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined> {
    signal.throwIfAborted();
    const path = join(this.#results, storedPathOf(address));
    // A disk that hangs keeps its calls, not their caller.
    return unlessAborted(this.#read(path, address, signal, takeRoom), signal);
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const path = join(this.#results, storedPathOf(address));
    const parts = formatResultFile(address, result);
    if (parts === undefined) return;
    const sizeBytes = parts[0].length + parts[1].length;
    if (sizeBytes > this.#maxFileBytes) return;
    const depth = path.slice(this.#results.length).split('/').length;
    const reservedBytes = fileCostBytes(sizeBytes) + depth * FOLDER_COST_BYTES;
    if (!this.#bound.tryReserve(reservedBytes)) return;
    let writtenBytes = 0;
    try {
      const made = await this.#move(await this.#incoming.write(parts), path);
      writtenBytes = fileCostBytes(sizeBytes) + made * FOLDER_COST_BYTES;
    } catch (error) {
      if (systemCodeOf(error) === 'ENAMETOOLONG') return;
      throw new Error(`The rendering ${path} cannot be written.`, { cause: error });
    } finally {
      this.#bound.settle(reservedBytes, writtenBytes);
    }
  }

  async remove(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    try {
      return await this.#removals.run((signal, onStep) =>
        removeByPrefix(this.#results, prefix, {
          onFreed: (bytes) => this.#bound.release(bytes),
          pace: this.#pace,
          onStep,
          signal,
        }),
      );
    } catch (error) {
      if (error instanceof StoreStalled) throw error;
      throw new Error(`The renderings of ${prefix} cannot be removed.`, { cause: error });
    }
  }

  close(): void {
    this.#bound.close();
  }

  usage(): StoreUsage | undefined {
    return this.#bound.usage;
  }

  async #read(
    path: string,
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined> {
    try {
      // O_NONBLOCK: a named pipe must not hang the open.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      const file = await open(path, flags);
      try {
        signal.throwIfAborted();
        const status = await file.stat();
        if (!status.isFile() || status.size > this.#maxFileBytes) return undefined;
        // A caller that has gone has given its room back already.
        if (signal.aborted || !takeRoom(status.size)) return undefined;
        const bytes = await readWhole(file, status.size);
        const result = parseResultFile(bytes, address);
        if (result !== undefined && Date.now() - status.mtimeMs > TOUCH_AFTER_MS) {
          const now = new Date();
          // A folder that may only be read is as good.
          await file.utimes(now, now).catch(() => undefined);
        }
        return result;
      } finally {
        await file.close();
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (isMissingFile(error)) return undefined;
      throw new Error(`The rendering ${path} cannot be read.`, { cause: error });
    }
  }

  /**
   * Gives a whole file its name.
   *
   * @returns how many folders were made for it
   * @throws Error of a system call; then the file is gone
   */
  async #move(source: string, target: string): Promise<number> {
    try {
      let made = 0;
      for (let attempt = 1; ; attempt += 1) {
        try {
          made += await makeFolder(dirname(target), dirname(this.#results));
          await rename(source, target);
          return made;
        } catch (error) {
          // The folder was empty until now, and another process, or we ourselves, cleared it away.
          if (systemCodeOf(error) !== 'ENOENT' || attempt === MAX_MOVE_ATTEMPTS) throw error;
        }
      }
    } catch (error) {
      await this.#incoming.discard(source);
      throw error;
    }
  }
}

/**
 * Opens a folder as a store and begins to count what is in it, unless that is left to others.
 *
 * @throws Error if the folder cannot be made or read, or is no folder
 */
export async function createFilesystemResultStore(
  options: FilesystemResultStoreOptions,
): Promise<FilesystemResultStore> {
  await mkdir(options.folder, { recursive: true });
  const folder = await realpath(options.folder);
  for (const name of ['results', 'incoming']) await makeFolder(join(folder, name), folder);
  return new FilesystemResultStore(folder, options);
}

/** The bytes of a file up to a length; fewer, if there are fewer. */
async function readWhole(file: FileHandle, sizeBytes: number): Promise<Buffer> {
  // Not of Node's pool: the body lives on in the memory cache, and would hold 8 KiB of others.
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  let filled = 0;
  while (filled < sizeBytes) {
    const { bytesRead } = await file.read(bytes, filled, sizeBytes - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
