import { randomBytes } from 'node:crypto';
import { futimes } from 'node:fs';
import { mkdir, realpath, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isTimeout, timeoutError, unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import type { ResultAddress, ResultStore, StoredResult, StoreUsage } from '../../pipeline/ports.ts';
import { isResultPath } from '../../pipeline/ports.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import {
  closeFile,
  type OpenedFile,
  openRegularFile,
  readBytes,
} from '../filesystem/opened-file.ts';
import { isMissingFile, isOutOfSpace, systemCodeOf } from '../filesystem/system-errors.ts';
import { walkFolder } from '../filesystem/walk.ts';
import { isRealFolder, makeFolder, writeWholeFile } from '../filesystem/whole-file.ts';
import {
  checkPathPrefix,
  formatResultFile,
  MAX_RESULT_FILE_BYTES,
  parseResultFile,
  storedPathOf,
} from './result-file.ts';
import { FOLDER_COST_BYTES, fileCostBytes, HOUR_MS } from './sweep.ts';
import { Sweeper, type SweeperOptions } from './sweeper.ts';

const setTimes = promisify(futimes);

/** Options of a store of renderings in a folder, which is for renderings alone. */
export interface ResultFolderOptions extends SweeperOptions {
  readonly stallTimeoutMs?: number;
}

/** Time after which a disk counts as hanging, in milliseconds: each step of a removal is a few system calls. */
const STALL_TIMEOUT_MS = 10_000;

/** Concurrent reads, writes and steps of removals: a hanging disk leaves two of Node's four threads for originals. */
const TURNS = { slots: 2, maxWaiting: Number.POSITIVE_INFINITY };

/**
 * Renderings in a folder: `results/` contains them by `resultPath`, `incoming/` unfinished writes. The path is the only
 * index, so several processes may share a folder. A file gets its name once it is complete and on the disk; a damaged
 * file is removed. The time of its last change is the time of its last use, to an hour. A rendering whose name is too
 * long for the file system is not stored.
 *
 * Only renderings are touched, by their names, and folders that become empty; no symbolic link below the folder is
 * followed. Not covered: a folder that is swapped for a link between the check and the removal or the move; writes of
 * other processes that are under way during a removal.
 */
export class ResultFolder implements ResultStore {
  readonly #folder: string;
  readonly #resultsPath: string;
  readonly #turns: Semaphore;
  readonly #stallTimeoutMs: number;
  readonly #sweeper: Sweeper;

  constructor(options: ResultFolderOptions) {
    this.#folder = options.folder;
    this.#sweeper = new Sweeper(options);
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
    const path = join(this.#resultsPath, storedPathOf(address));
    const parts = formatResultFile(address, result);
    if (parts === undefined) return;
    const costBytes = fileCostBytes(parts[0].length + parts[1].length);
    if (costBytes > this.#sweeper.maxUnsweptBytes) return;
    const release = await this.#takeTurn(new AbortController().signal);
    if (!this.#sweeper.mayWrite(costBytes)) {
      release();
      throw new Error(`The folder ${this.#folder} has to be swept before more is written.`);
    }
    try {
      await writeWholeFile(parts, {
        path,
        temporaryPath: join(this.#folder, 'incoming', randomBytes(16).toString('hex')),
        root: this.#folder,
        onFolderMade: () => this.#sweeper.add(FOLDER_COST_BYTES),
      }).finally(release);
      this.#sweeper.add(costBytes);
    } catch (error) {
      if (systemCodeOf(error) === 'ENAMETOOLONG') return;
      if (isOutOfSpace(error)) this.#sweeper.makeRoom();
      throw new Error(`The rendering ${path} cannot be written.`, { cause: error });
    }
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

  sweep(): Promise<void> {
    return this.#sweeper.sweep();
  }

  close(): void {
    this.#sweeper.close();
  }

  usage(): StoreUsage | undefined {
    return this.#sweeper.usage;
  }

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

  /** Waits for a turn; returns a function that ends it. @throws Error if earlier turns take too long; `signal.reason` */
  async #takeTurn(signal: AbortSignal): Promise<() => void> {
    return this.#turns.enter(signal).catch(() => {
      signal.throwIfAborted();
      throw timeoutError('The disk has not responded to earlier work.');
    });
  }
}

/** Opens a folder of renderings, created if missing. @throws Error if it cannot be created or read, or is no folder */
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
