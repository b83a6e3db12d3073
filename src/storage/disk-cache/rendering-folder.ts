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

/** Options of a folder of renderings. */
export interface RenderingFolderOptions extends Omit<RemovalPlace, 'resultsPath'> {
  /** Largest file that is read, in bytes. */
  readonly maxFileBytes: number;
  /** Longest time of each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number | undefined;
}

/** Age of the last use from which a read updates it, in milliseconds: an update writes metadata. */
const TOUCH_AFTER_MS = 60 * 60 * 1000;

/**
 * Time after which a disk counts as hanging, in milliseconds. A removal may take minutes, but each of its steps is a
 * few system calls, and two seconds are already too long for a read.
 */
const STALL_TIMEOUT_MS = 10_000;

/**
 * Concurrent reads, writes, evictions and scans. All file access of the process shares Node's four threads, and a
 * hanging disk blocks those in use: half of them remain for purges, one at a time, and for originals.
 */
const TURNS = {
  slots: 2,
  maxWaiting: Number.POSITIVE_INFINITY,
  maxWaitMs: STALL_TIMEOUT_MS,
};

/** Most orphans that are remembered for removal; the next start finds more. */
const MAX_ORPHANS = 1_000;

/**
 * Renderings in a folder, without a bound: `results/` contains them by `resultPath`, `incoming/` unfinished writes,
 * `owner/` the sockets of `claimFolder`. A file gets its name once it is complete and on the disk; should a disk still
 * lose bytes, its checksum reveals the damage (`parseResultFile`), and the file is removed. The time of its last change
 * is the time of its last use, to an hour.
 *
 * A rendering whose name is too long for the file system is not stored, which is not an error.
 *
 * Only renderings are touched, by their names, and folders that become empty; no symbolic link below the folder is
 * followed. Not covered: a folder that is swapped for a link between the check and the removal or the move.
 */
export class RenderingFolder implements ResultStore {
  /** Real path of the folder of renderings. */
  readonly resultsPath: string;
  readonly #incomingPath: string;
  readonly #maxFileBytes: number;
  readonly #place: RemovalPlace;
  readonly #watch: StallWatch;
  readonly #turns = new Semaphore(TURNS);
  /** Temporary files that a failing disk could not remove. */
  readonly #orphans = new Set<string>();

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
      const release = await this.takeTurn(signal);
      let file: OpenedFile | undefined;
      try {
        file = await openRegularFile(fullPath);
        if (file === undefined) return undefined;
        const { descriptor, status } = file;
        const sizeBytes = Number(status.size);
        // A caller that has aborted has already returned its room.
        signal.throwIfAborted();
        if (sizeBytes > this.#maxFileBytes || !takeRoom(sizeBytes)) return undefined;
        const result = parseResultFile(await readBytes(file, 0, sizeBytes), address);
        // In a read-only folder, damaged files stay, and times do not change.
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
        // Closing may hang, too.
        if (file === undefined) release();
        else closeFile(file, release);
      }
    };
    // A hanging disk keeps its calls, but not their caller.
    return unlessAborted(read(), signal);
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const path = storedPathOf(address);
    const parts = formatResultFile(address, result);
    if (parts !== undefined) await this.writeFile(path, parts);
  }

  /**
   * Writes a file, in place of an existing one.
   *
   * @param onFolderMade called for each folder that is created for the file
   * @returns whether the file system accepts the name
   * @throws Error of a system call; then nothing of the file remains
   */
  async writeFile(
    path: string,
    parts: readonly Uint8Array[],
    onFolderMade?: () => void,
  ): Promise<boolean> {
    const fullPath = join(this.resultsPath, path);
    const release = await this.takeTurn(new AbortController().signal);
    const temporaryPath = join(this.#incomingPath, randomBytes(16).toString('hex'));
    try {
      await writeWholeFile(parts, {
        path: fullPath,
        temporaryPath,
        root: dirname(this.resultsPath),
        onFolderMade,
        onOrphan: () => this.#orphans.size < MAX_ORPHANS && this.#orphans.add(temporaryPath),
      });
      await this.#removeOrphans().catch(() => undefined);
      return true;
    } catch (error) {
      if (systemCodeOf(error) === 'ENAMETOOLONG') return false;
      throw new Error(`The rendering ${fullPath} cannot be written.`, { cause: error });
    } finally {
      release();
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

  /** Does `removeFile` of rendering-removal, in turn. */
  async removeFile(path: string): Promise<void> {
    const release = await this.takeTurn(new AbortController().signal);
    await removeFile(this.#place, path).finally(release);
  }

  /**
   * Removes the temporary files that ended processes have left.
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

  /** Does nothing: the folder has no background work. */
  close(): void {}

  async #removeOrphans(): Promise<void> {
    for (const path of this.#orphans) {
      await isRemoved(unlink(path));
      this.#orphans.delete(path);
    }
  }

  /**
   * Waits for one of the turns that all work here except purges takes.
   *
   * @returns a function that ends the turn
   * @throws StoreStalled if earlier turns take too long; `signal.reason`
   */
  async takeTurn(signal: AbortSignal): Promise<() => void> {
    return this.#turns.enter(signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new StoreStalled('The disk has not answered to those ahead.', { cause });
    });
  }
}

/**
 * Opens a folder, and creates it if missing.
 *
 * @returns its real path
 * @throws Error if the path cannot be created or read, or is not a folder
 */
export async function openRenderingFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  const folder = await realpath(path);
  for (const name of ['results', 'incoming']) await makeFolder(join(folder, name), folder);
  return folder;
}
