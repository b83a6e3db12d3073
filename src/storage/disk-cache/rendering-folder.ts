import { randomBytes } from 'node:crypto';
import { futimes } from 'node:fs';
import { mkdir, realpath, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { unlessAborted } from '../../pipeline/abort.ts';
import {
  type ResultAddress,
  type ResultStore,
  type StoredResult,
  StoreStalled,
} from '../../pipeline/ports.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import {
  closeFile,
  type OpenedFile,
  openRegularFile,
  readBytes,
} from '../filesystem/opened-file.ts';
import { isMissingFile, systemCodeOf } from '../filesystem/system-errors.ts';
import { makeFolder, writeWholeFile } from '../filesystem/whole-file.ts';
import {
  checkPathPrefix,
  formatResultFile,
  parseResultFile,
  storedPathOf,
} from '../result-file.ts';
import { isRemoved, type RemovalPlace, removeAll, removeFile } from './rendering-removal.ts';
import { StallWatch } from './stall-watch.ts';

const setTimes = promisify(futimes);

/** What a folder of renderings is made from. */
export interface RenderingFolderOptions extends Omit<RemovalPlace, 'resultsPath'> {
  /** Largest file that is read, in bytes. */
  readonly maxFileBytes: number;
  /** Time for each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number | undefined;
}

/** Age from which a read renews the time of last use, in milliseconds: it costs a write of metadata. */
const TOUCH_AFTER_MS = 60 * 60 * 1000;

/**
 * Time after which a disk is taken to hang, in milliseconds. A removal may take minutes, but each of its steps is
 * a few system calls, and two seconds are too long for a read already.
 */
const STALL_TIMEOUT_MS = 10_000;

/**
 * Reads, writes, evictions and scans at a time. All file access of the process shares Node's four threads, and a disk
 * that hangs keeps those that are on it: half of them are left for purges, one at a time, and the originals.
 */
const TURNS = {
  slots: 2,
  maxWaiting: Number.POSITIVE_INFINITY,
  maxWaitMs: STALL_TIMEOUT_MS,
};

/** Temporary files that are remembered to be removed; the next start finds more. */
const MAX_LEFT = 1_000;

/**
 * Renderings in a folder, without a bound: `results/` has them by `resultPath`, `incoming/` what is being
 * written, `owner/` the sockets of `claimFolder`. A file gets its name when it is whole and on the disk, so no
 * other is ever seen under it; should a disk lose bytes all the same, the sum in it tells (`parseResultFile`),
 * and it is removed. The time of its last change is the time of its last use, to an hour.
 *
 * A rendering whose name is too long for the file system is not kept, and that is no error.
 *
 * Nothing is touched but renderings, by their names, and folders that are empty then; no symbolic link is
 * followed, wherever below the folder it is. Not covered: a folder that is swapped for a link between the check
 * and the removal or the move.
 */
export class RenderingFolder implements ResultStore {
  /** Where the renderings are: a real path. */
  readonly resultsPath: string;
  readonly #incomingPath: string;
  readonly #maxFileBytes: number;
  readonly #place: RemovalPlace;
  readonly #watch: StallWatch;
  readonly #turns = new Semaphore(TURNS);
  /** Temporary files that a disk which failed has kept. */
  readonly #left = new Set<string>();

  /** @param folder a real path; see `openRenderingFolder` */
  constructor(folder: string, options: RenderingFolderOptions) {
    this.resultsPath = join(folder, 'results');
    this.#incomingPath = join(folder, 'incoming');
    this.#maxFileBytes = options.maxFileBytes;
    this.#place = { ...options, resultsPath: this.resultsPath };
    this.#watch = new StallWatch(options.stallTimeoutMs ?? STALL_TIMEOUT_MS);
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined> {
    signal.throwIfAborted();
    const path = storedPathOf(address);
    const read = async (): Promise<StoredResult | undefined> => {
      const fullPath = join(this.resultsPath, path);
      const leave = await this.takeTurn(signal);
      let file: OpenedFile | undefined;
      try {
        file = await openRegularFile(fullPath);
        if (file === undefined) return undefined;
        const { descriptor, status } = file;
        const sizeBytes = Number(status.size);
        // A caller that has gone has given its room back already.
        signal.throwIfAborted();
        if (sizeBytes > this.#maxFileBytes || !takeRoom(sizeBytes)) return undefined;
        const result = parseResultFile(await readBytes(file, 0, sizeBytes), address);
        // In a folder that may only be read, damaged files stay, and times are as they were.
        if (result === undefined) {
          await removeFile(this.#place, path).catch(() => undefined);
        } else if (Date.now() - Number(status.mtimeMs) > TOUCH_AFTER_MS) {
          const now = new Date();
          await setTimes(descriptor, now, now).catch(() => undefined);
        }
        return result;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isMissingFile(error)) return undefined;
        throw new Error(`The rendering ${fullPath} cannot be read.`, { cause: error });
      } finally {
        // That may hang, too.
        if (file === undefined) leave();
        else closeFile(file, leave);
      }
    };
    // A disk that hangs keeps its calls, not their caller.
    return unlessAborted(read(), signal);
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const path = storedPathOf(address);
    const parts = formatResultFile(address, result);
    if (parts !== undefined) await this.writeFile(path, parts);
  }

  /**
   * Writes a file, in place of the one that is there.
   *
   * @param onFolderMade called for each folder that is made for it
   * @returns whether the file system takes its name
   * @throws Error of a system call; then nothing is left of the file
   */
  async writeFile(
    path: string,
    parts: readonly Uint8Array[],
    onFolderMade?: () => void,
  ): Promise<boolean> {
    const fullPath = join(this.resultsPath, path);
    const leave = await this.takeTurn(new AbortController().signal);
    const temporaryPath = join(this.#incomingPath, randomBytes(16).toString('hex'));
    try {
      await writeWholeFile(parts, {
        path: fullPath,
        temporaryPath,
        root: dirname(this.resultsPath),
        onFolderMade,
        onLeft: () => this.#left.size < MAX_LEFT && this.#left.add(temporaryPath),
      });
      await this.#removeLeft().catch(() => undefined);
      return true;
    } catch (error) {
      if (systemCodeOf(error) === 'ENAMETOOLONG') return false;
      throw new Error(`The rendering ${fullPath} cannot be written.`, { cause: error });
    } finally {
      leave();
    }
  }

  async remove(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    try {
      return await this.#watch.run((...watch) => removeAll(this.#place, prefix, ...watch));
    } catch (error) {
      if (error instanceof StoreStalled) throw error;
      throw new Error(`The renderings of ${prefix} cannot be removed.`, { cause: error });
    }
  }

  /** As `removeFile` of rendering-removal, in turn. */
  async removeFile(path: string): Promise<void> {
    const leave = await this.takeTurn(new AbortController().signal);
    await removeFile(this.#place, path).finally(leave);
  }

  /**
   * Removes what processes that have ended left in the middle of a write.
   *
   * @throws Error of a system call; `signal.reason`
   */
  async removeAbandoned(signal: AbortSignal): Promise<void> {
    for await (const entry of walkFolder(this.#incomingPath, { signal })) {
      if (entry.kind === 'file' && /\/[\da-f]{32}$/.test(entry.path)) {
        await isRemoved(unlink(entry.path));
      }
    }
  }

  /** Does nothing: the folder does nothing by itself. */
  close(): void {}

  async #removeLeft(): Promise<void> {
    for (const path of this.#left) {
      await isRemoved(unlink(path));
      this.#left.delete(path);
    }
  }

  /**
   * Waits for one of the turns that all work here but purges has.
   *
   * @returns gives it back
   * @throws StoreStalled if those ahead take too long; `signal.reason`
   */
  async takeTurn(signal: AbortSignal): Promise<() => void> {
    return this.#turns.enter(signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new StoreStalled('The disk has not answered to those ahead.', { cause });
    });
  }
}

/**
 * Opens a folder, which is made if it is missing.
 *
 * @returns its real path
 * @throws Error if it cannot be made or read, or is no folder
 */
export async function openRenderingFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  const folder = await realpath(path);
  for (const name of ['results', 'incoming']) await makeFolder(join(folder, name), folder);
  return folder;
}
