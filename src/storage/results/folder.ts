import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { futimes } from 'node:fs';
import { mkdir, realpath, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { isTimeout, timeoutError, unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import type {
  Log,
  ResultAddress,
  ResultStore,
  StoredResult,
  StoreUsage,
} from '../../pipeline/ports.ts';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import {
  closeFile,
  type OpenedFile,
  openRegularFile,
  readBytes,
} from '../filesystem/opened-file.ts';
import { isMissingFile, systemCodeOf } from '../filesystem/system-errors.ts';
import { isRealFolder, makeFolder, writeWholeFile } from '../filesystem/whole-file.ts';
import {
  checkPathPrefix,
  formatResultFile,
  MAX_RESULT_FILE_BYTES,
  parseResultFile,
  storedPathOf,
} from './result-file.ts';
import { FOLDER_COST_BYTES, fileCostBytes, HOUR_MS, type Swept } from './sweep.ts';

const setTimes = promisify(futimes);

/** Options of a store of renderings in a folder. */
export interface ResultFolderOptions {
  /** Folder for renderings alone; created if missing. */
  readonly folder: string;
  /** Bound of the disk space in bytes, counted in whole blocks, folders included. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Program of the sweeping thread; by default the compiled file beside this one. */
  readonly sweepFile?: URL;
  /** Longest wait for each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number;
}

/** Part of the bound that this process writes between two sweeps. */
const SWEEP_AFTER = 0.02;

/**
 * Most that this process writes beyond what a sweep has counted, as a part of the bound: a sweep leaves at most 0.92 of
 * the bound, and so four processes stay within 1.08 of it. A single larger file is not stored.
 */
const MAX_UNSWEPT = 0.04;

/** Delay before a failed sweep is retried, in milliseconds. */
const RETRY_AFTER_MS = 60_000;

/**
 * Time after which a disk counts as hanging, in milliseconds. A removal may take minutes, but each of its steps is a
 * few system calls.
 */
const STALL_TIMEOUT_MS = 10_000;

/**
 * Concurrent reads, writes and steps of removals. All file access of the process shares Node's four threads, and a
 * hanging disk blocks those in use: half of them remain for originals.
 */
const TURNS = { slots: 2, maxWaiting: Number.POSITIVE_INFINITY };

const SWEEP_FILE = new URL('./sweep-thread.js', import.meta.url);

/** Memory of the sweeping thread, in MiB: it holds little, and its garbage is short-lived. */
const SWEEP_MEMORY = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/**
 * Renderings in a folder: `results/` contains them by `resultPath`, `incoming/` unfinished writes. The path is the only
 * index, so memory does not grow with the disk, and several processes may share a folder. A file gets its name once it
 * is complete and on the disk; should a disk still lose bytes, its checksum reveals the damage (`parseResultFile`), and
 * the file is removed. The time of its last change is the time of its last use, to an hour.
 *
 * Each process sweeps the folder after its start, and whenever it has written a part of the bound: a sweep counts, and
 * evicts the least recently used (`sweep`). While a sweep fails or takes too long, nothing more is written than
 * `MAX_UNSWEPT`, and reads go on.
 *
 * A rendering whose name is too long for the file system is not stored, which is not an error.
 *
 * Only renderings are touched, by their names, and folders that become empty; no symbolic link below the folder is
 * followed. Not covered: a folder that is swapped for a link between the check and the removal or the move; writes of
 * other processes that are under way during a removal.
 */
export class ResultFolder implements ResultStore {
  readonly #options: ResultFolderOptions;
  /** Real path of the folder of renderings. */
  readonly #resultsPath: string;
  readonly #turns: Semaphore;
  readonly #stallTimeoutMs: number;
  readonly #closing = new AbortController();
  #isSweeping = false;
  /** Disk space that the last sweep has counted. */
  #sweptBytes: number | undefined;
  /** Disk space that this process has written since. */
  #writtenBytes = 0;
  #evictions = 0;

  /** @param options with the real path of a folder that `openResultFolder` has made */
  constructor(options: ResultFolderOptions) {
    this.#options = options;
    this.#resultsPath = join(options.folder, 'results');
    this.#stallTimeoutMs = options.stallTimeoutMs ?? STALL_TIMEOUT_MS;
    this.#turns = new Semaphore({ ...TURNS, maxWaitMs: this.#stallTimeoutMs });
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined> {
    signal.throwIfAborted();
    const path = join(this.#resultsPath, storedPathOf(address));
    const read = async (): Promise<StoredResult | undefined> => {
      const release = await this.#takeTurn(signal);
      let file: OpenedFile | undefined;
      try {
        file = await openRegularFile(path);
        signal.throwIfAborted();
        const sizeBytes = Number(file?.status.size);
        if (file === undefined || sizeBytes > MAX_RESULT_FILE_BYTES) return undefined;
        onFound(sizeBytes);
        const result = parseResultFile(await readBytes(file, 0, sizeBytes), address);
        // In a read-only folder, damaged files stay, and times do not change.
        if (result === undefined) {
          await unlink(path).catch(() => undefined);
        } else if (Date.now() - Number(file.status.mtimeMs) > HOUR_MS) {
          const now = new Date();
          await setTimes(file.descriptor, now, now).catch(() => undefined);
        }
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (isMissingFile(error)) return undefined;
        throw new Error(`The rendering ${path} cannot be read.`, { cause: error });
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
    const { folder, maxBytes } = this.#options;
    const path = join(this.#resultsPath, storedPathOf(address));
    const parts = formatResultFile(address, result);
    if (parts === undefined) return;
    const costBytes = fileCostBytes(parts[0].length + parts[1].length);
    if (costBytes > MAX_UNSWEPT * maxBytes) return;
    if (this.#writtenBytes + costBytes > MAX_UNSWEPT * maxBytes) {
      this.#sweepIfDue();
      throw new Error(`The folder ${folder} has to be swept before more is written.`);
    }
    this.#writtenBytes += costBytes;
    try {
      await this.#writeFile(path, parts);
    } catch (error) {
      this.#writtenBytes -= costBytes;
      if (systemCodeOf(error) === 'ENAMETOOLONG') return;
      throw new Error(`The rendering ${path} cannot be written.`, { cause: error });
    }
    this.#sweepIfDue();
  }

  async remove(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    const timeoutMs = this.#stallTimeoutMs;
    const onTimeout = (): Error => timeoutError(`The disk has not responded for ${timeoutMs} ms.`);
    try {
      return await withDeadline(timeoutMs, undefined, onTimeout, (within, restart) =>
        this.#removeAll(prefix, within, () => restart(timeoutMs)),
      );
    } catch (error) {
      if (isTimeout(error)) throw error;
      throw new Error(`The renderings of ${prefix} cannot be removed.`, { cause: error });
    }
  }

  /** Ends a sweep. */
  close(): void {
    this.#closing.abort();
  }

  /** Returns what the last sweep has counted and this process has written since; `undefined` before the first. */
  usage(): StoreUsage | undefined {
    if (this.#sweptBytes === undefined) return undefined;
    return {
      heldBytes: this.#sweptBytes + this.#writtenBytes,
      maxBytes: this.#options.maxBytes,
      evictions: this.#evictions,
    };
  }

  /** Sweeps the folder in the background; after a failure, waits before the next attempt may begin. */
  async sweep(): Promise<void> {
    const { folder, log } = this.#options;
    const { signal } = this.#closing;
    this.#isSweeping = true;
    const coveredBytes = this.#writtenBytes;
    const startedMs = performance.now();
    try {
      const { files, heldBytes, evictions, foreign, fault } = await this.#runThread();
      this.#sweptBytes = heldBytes;
      this.#writtenBytes = Math.max(0, this.#writtenBytes - coveredBytes);
      this.#evictions += evictions;
      const durationMs = Math.round(performance.now() - startedMs);
      const details = { files, evictions, heldBytes, durationMs };
      log.info(foreign > 0 ? { ...details, foreign } : details, 'result store swept');
      if (fault !== undefined) {
        log.warn({ folder, reason: fault }, 'a part of the result store cannot be swept');
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error, folder }, 'the folder of the result store cannot be swept');
      await sleep(RETRY_AFTER_MS, undefined, { ref: false, signal }).catch(() => undefined);
    } finally {
      this.#isSweeping = false;
    }
  }

  #sweepIfDue(): void {
    const isDue = this.#writtenBytes > SWEEP_AFTER * this.#options.maxBytes;
    if (isDue && !this.#isSweeping && !this.#closing.signal.aborted) void this.sweep();
  }

  /** Sweeps in a thread: a disk that hangs then blocks none of those that all file access shares. */
  async #runThread(): Promise<Swept> {
    const { folder, maxBytes, sweepFile = SWEEP_FILE } = this.#options;
    const { signal } = this.#closing;
    const workerData = { folder, maxBytes };
    const thread = new Worker(sweepFile, { workerData, resourceLimits: SWEEP_MEMORY });
    thread.unref();
    try {
      const [swept] = await once(thread, 'message', { signal });
      return swept;
    } finally {
      void thread.terminate();
    }
  }

  async #writeFile(path: string, parts: readonly Uint8Array[]): Promise<void> {
    const { folder } = this.#options;
    const release = await this.#takeTurn(new AbortController().signal);
    try {
      await writeWholeFile(parts, {
        path,
        temporaryPath: join(folder, 'incoming', randomBytes(16).toString('hex')),
        root: folder,
        onFolderMade: () => {
          this.#writtenBytes += FOLDER_COST_BYTES;
        },
      });
    } finally {
      release();
    }
  }

  /** Removes the renderings whose path begins with a text, and folders that become empty. */
  async #removeAll(prefix: string, signal: AbortSignal, onStep: () => void): Promise<number> {
    const inTurn = async <Result>(step: () => Promise<Result>): Promise<Result> => {
      const release = await this.#takeTurn(signal);
      onStep();
      return step().finally(release);
    };
    const nameAt = prefix.lastIndexOf('/') + 1;
    const folder = join(this.#resultsPath, prefix.slice(0, nameAt), '.');
    if (!(await inTurn(() => isRealFolder(folder)))) return 0;
    const namePrefix = prefix.slice(nameAt);
    const walk = walkFolder(folder, { namePrefix, signal, onStep });
    let removed = 0;
    for (;;) {
      const { value: entry, done } = await inTurn(() => walk.next());
      if (done === true) break;
      if (entry.kind === 'refused') throw entry.error;
      if (entry.kind === 'folder') await inTurn(() => isRemoved(rmdir(entry.path)));
      else if (isResultPath(entry.path) && (await inTurn(() => isRemoved(unlink(entry.path)))))
        removed += 1;
    }
    let empty = folder;
    while (empty !== this.#resultsPath && (await inTurn(() => isRemoved(rmdir(empty)))))
      empty = dirname(empty);
    return removed;
  }

  /**
   * Waits for a turn.
   *
   * @returns a function that ends the turn
   * @throws Error if earlier turns take too long; `signal.reason`
   */
  async #takeTurn(signal: AbortSignal): Promise<() => void> {
    return this.#turns.enter(signal).catch(() => {
      signal.throwIfAborted();
      throw timeoutError('The disk has not responded to earlier work.');
    });
  }
}

/**
 * Opens a folder of renderings, and creates it if missing.
 *
 * @throws Error if the path cannot be created or read, or is not a folder
 */
export async function openResultFolder(options: ResultFolderOptions): Promise<ResultFolder> {
  await mkdir(options.folder, { recursive: true });
  const folder = await realpath(options.folder);
  for (const name of ['results', 'incoming']) await makeFolder(join(folder, name), folder);
  return new ResultFolder({ ...options, folder });
}

/** Whether the call removed anything; false for missing entries, and for folders that are not empty. */
async function isRemoved(call: Promise<void>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    const code = systemCodeOf(error);
    if (isMissingFile(error) || code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}
