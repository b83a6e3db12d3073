import { randomBytes } from 'node:crypto';
import { futimes } from 'node:fs';
import { mkdir, realpath, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isResultPath, type ResultAddress } from '../../contract/result-key.ts';
import { isTimeout, timeoutError, unlessAborted, withDeadline } from '../../pipeline/abort.ts';
import type { Log, ResultStore, StoredResult, StoreUsage } from '../../pipeline/ports.ts';
import { Semaphore } from '../../pipeline/semaphore.ts';
import {
  closeFile,
  isMissingFile,
  isRealDirectory,
  makeDirectory,
  type OpenedFile,
  openRegularFile,
  readBytes,
  systemCodeOf,
  writeAtomically,
} from '../filesystem/files.ts';
import { traverseDirectory } from '../filesystem/traverse.ts';
import {
  checkPathPrefix,
  DIRECTORY_COST_BYTES,
  fileCostBytes,
  formatResultFile,
  HOUR_MS,
  MAX_RESULT_FILE_BYTES,
  parseResultFile,
  storedPathOf,
} from './result-file.ts';
import { Sweeper } from './sweeper.ts';

const setTimes = promisify(futimes);

export interface ResultDirectoryDoubles {
  readonly stallTimeoutMs?: number;
  readonly sweepFile?: URL;
}

/** Time after which a disk counts as hanging: each step of a removal is a few system calls. */
const STALL_TIMEOUT_MS = 10_000;

/** Limits file access, so that a hanging disk blocks only two of Node's four threads. */
const IO_PERMITS = { slots: 2, maxWaiting: Number.POSITIVE_INFINITY };

/**
 * Result store in a directory: `results/` has the renderings by `resultPath`, `incoming/` the unfinished files. The
 * path is the only index, so that processes can share a directory. The modification time is the time of the last use,
 * to the hour. Renderings whose names are too long for the file system are not stored.
 *
 * Removes only files with names of renderings, and empty directories; follows no symbolic links. Not covered: a
 * directory that is swapped for a link between check and use; writes of other processes during a removal.
 */
export class ResultDirectory implements ResultStore {
  readonly #directory: string;
  readonly #resultsPath: string;
  readonly #permits: Semaphore;
  readonly #stallTimeoutMs: number;
  readonly #sweeper: Sweeper;

  constructor(directory: string, sweeper: Sweeper, stallTimeoutMs = STALL_TIMEOUT_MS) {
    this.#directory = directory;
    this.#sweeper = sweeper;
    this.#resultsPath = join(directory, 'results');
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#permits = new Semaphore({ ...IO_PERMITS, maxWaitMs: stallTimeoutMs });
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined> {
    signal.throwIfAborted();
    const path = join(this.#resultsPath, storedPathOf(address));
    const read = async (): Promise<StoredResult | undefined> => {
      const free = await this.#acquire(signal);
      let file: OpenedFile | undefined;
      try {
        file = await openRegularFile(path);
        signal.throwIfAborted();
        const sizeBytes = Number(file?.status.size);
        if (file === undefined || sizeBytes > MAX_RESULT_FILE_BYTES) return undefined;
        onFound(sizeBytes);
        const result = parseResultFile(await readBytes(file, 0, sizeBytes), address);
        // A read-only directory keeps damaged files and old times.
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
        // Closing can hang as well, so the permit remains until then.
        if (file === undefined) free();
        else closeFile(file, free);
      }
    };
    // A hanging disk must not block the caller.
    return unlessAborted(read(), signal);
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const path = join(this.#resultsPath, storedPathOf(address));
    const parts = formatResultFile(address, result);
    if (parts === undefined) return;
    const costBytes = fileCostBytes(parts[0].length + parts[1].length);
    if (costBytes > this.#sweeper.maxUnsweptBytes) return;
    const free = await this.#acquire(new AbortController().signal);
    if (!this.#sweeper.mayWrite(costBytes)) {
      free();
      throw new Error(`${this.#directory} must be swept before the next write.`);
    }
    try {
      await writeAtomically(parts, {
        path,
        temporaryPath: join(this.#directory, 'incoming', randomBytes(16).toString('hex')),
        root: this.#directory,
        onDirectoryMade: () => this.#sweeper.add(DIRECTORY_COST_BYTES),
      }).finally(free);
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
    const withPermit = async <Result>(step: () => Promise<Result>): Promise<Result> => {
      const free = await this.#acquire(signal);
      onStep();
      return step().finally(free);
    };
    const nameAt = prefix.lastIndexOf('/') + 1;
    const directory = join(this.#resultsPath, prefix.slice(0, nameAt), '.');
    if (!(await withPermit(() => isRealDirectory(directory)))) return 0;
    const namePrefix = prefix.slice(nameAt);
    const entries = traverseDirectory(directory, signal, namePrefix, onStep);
    let removed = 0;
    for (;;) {
      const { value: entry, done } = await withPermit(() => entries.next());
      if (done === true) break;
      if (entry.kind === 'refused') throw entry.error;
      if (entry.kind === 'directory') await withPermit(() => isRemoved(rmdir(entry.path)));
      else if (isResultPath(entry.path) && (await withPermit(() => isRemoved(unlink(entry.path)))))
        removed += 1;
    }
    let empty = directory;
    while (empty !== this.#resultsPath && (await withPermit(() => isRemoved(rmdir(empty)))))
      empty = dirname(empty);
    return removed;
  }

  /** Returns a function that frees the permit. @throws Error if earlier work takes too long; `signal.reason` */
  async #acquire(signal: AbortSignal): Promise<() => void> {
    return this.#permits.acquire(signal).catch(() => {
      signal.throwIfAborted();
      throw timeoutError('The disk has not responded to earlier work.');
    });
  }
}

export async function openResultDirectory(
  path: string,
  maxBytes: number,
  log: Log,
  { stallTimeoutMs, sweepFile }: ResultDirectoryDoubles = {},
): Promise<ResultDirectory> {
  await mkdir(path, { recursive: true });
  const directory = await realpath(path);
  for (const name of ['results', 'incoming']) await makeDirectory(join(directory, name), directory);
  return new ResultDirectory(
    directory,
    new Sweeper(directory, maxBytes, log, sweepFile),
    stallTimeoutMs,
  );
}

/** Whether the call removed an entry; `false` for missing entries and non-empty directories. */
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

function isOutOfSpace(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}
