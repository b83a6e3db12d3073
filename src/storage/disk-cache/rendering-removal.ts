import { rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unlessAborted } from '../../pipeline/abort.ts';
import { StoreStalled } from '../../pipeline/ports.ts';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { isMissingFile, systemCodeOf } from '../filesystem/system-errors.ts';
import { isRealFolder } from '../filesystem/whole-file.ts';
import { checkPathPrefix } from '../result-file.ts';

/** Called as the folder changes; paths are those of renderings, `resultPath`. */
export interface FolderWatcher {
  onFolderRemoved(): void;
  onFileRemoved(path: string): void;
}

/** How removals go on. */
export interface RenderingRemovalOptions {
  readonly watcher?: FolderWatcher;
  /** Time for each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number | undefined;
}

/**
 * Time after which a disk is taken to hang, in milliseconds. A removal may take minutes, but each of its steps is
 * a few system calls, and two seconds are too long for a read already.
 */
const STALL_TIMEOUT_MS = 10_000;

const NO_WATCHER: FolderWatcher = {
  onFolderRemoved: () => undefined,
  onFileRemoved: () => undefined,
};

/** Removes renderings from a folder, and the folders that are empty then; nothing else, and no link is followed. */
export class RenderingRemoval {
  readonly #resultsPath: string;
  readonly #watcher: FolderWatcher;
  readonly #watch: RemovalWatch;

  /** @param resultsPath where the renderings are: a real path */
  constructor(resultsPath: string, { watcher, stallTimeoutMs }: RenderingRemovalOptions) {
    this.#resultsPath = resultsPath;
    this.#watcher = watcher ?? NO_WATCHER;
    this.#watch = new RemovalWatch(stallTimeoutMs ?? STALL_TIMEOUT_MS);
  }

  /**
   * Removes all renderings whose path begins with a text; see `ResultStore.remove`.
   *
   * @throws Error if they cannot be removed, `StoreStalled` if the disk does not answer
   */
  async removeAll(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    try {
      return await this.#watch.run((signal, onStep) => this.#removeAll(prefix, signal, onStep));
    } catch (error) {
      if (error instanceof StoreStalled) throw error;
      throw new Error(`The renderings of ${prefix} cannot be removed.`, { cause: error });
    }
  }

  /**
   * Removes one file, if it is there, and the folders that are empty then.
   *
   * @throws Error if a symbolic link leads there, and of a system call
   */
  async removeFile(path: string): Promise<void> {
    const fullPath = join(this.#resultsPath, path);
    if (!(await isRealFolder(dirname(fullPath)))) return;
    await isRemoved(unlink(fullPath));
    this.#watcher.onFileRemoved(path);
    await this.#removeEmpty(dirname(fullPath));
  }

  async #removeAll(prefix: string, signal: AbortSignal, onStep: () => void): Promise<number> {
    const nameAt = prefix.lastIndexOf('/') + 1;
    const folder = join(this.#resultsPath, prefix.slice(0, nameAt), '.');
    if (!(await isRealFolder(folder))) return 0;
    let files = 0;
    const namePrefix = prefix.slice(nameAt);
    for await (const entry of walkFolder(folder, { namePrefix, signal, onStep })) {
      if (entry.kind === 'refused') throw entry.error;
      if (entry.kind === 'folder') {
        if (await isRemoved(rmdir(entry.path))) this.#watcher.onFolderRemoved();
        continue;
      }
      const path = entry.path.slice(this.#resultsPath.length + 1);
      if (!isResultPath(path) || !(await isRemoved(unlink(entry.path)))) continue;
      this.#watcher.onFileRemoved(path);
      files += 1;
    }
    await this.#removeEmpty(folder);
    return files;
  }

  /** Removes a folder, if nothing is in it, and those above it likewise. */
  async #removeEmpty(folder: string): Promise<void> {
    for (let path = folder; path !== this.#resultsPath; path = dirname(path)) {
      if (!(await isRemoved(rmdir(path)))) return;
      this.#watcher.onFolderRemoved();
    }
  }
}

/** Whether it was removed by us; what is gone already, or not empty, was not. */
export async function isRemoved(call: Promise<void>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    const code = systemCodeOf(error);
    if (isMissingFile(error) || code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Watches over removals from a disk: one that makes no step for some time is given up. Its system call cannot be,
 * and keeps one of the few threads that all file access shares; so no other removal begins before it has ended.
 */
class RemovalWatch {
  readonly #stallTimeoutMs: number;
  #hanging = 0;

  /** @param stallTimeoutMs longest time from one step to the next, in milliseconds */
  constructor(stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /**
   * Runs a removal.
   *
   * @param removal has to stop with the signal, at the latest when its disk answers again
   * @throws StoreStalled; what the removal throws
   */
  async run<Result>(
    removal: (signal: AbortSignal, onStep: () => void) => Promise<Result>,
  ): Promise<Result> {
    if (this.#hanging > 0) throw new StoreStalled('The disk still does not answer.');
    const stalled = new AbortController();
    const timer = setTimeout(() => {
      stalled.abort(new StoreStalled(`The disk has not answered for ${this.#stallTimeoutMs} ms.`));
    }, this.#stallTimeoutMs);
    const running = removal(stalled.signal, () => timer.refresh());
    try {
      return await unlessAborted(running, stalled.signal);
    } catch (error) {
      if (stalled.signal.aborted) {
        this.#hanging += 1;
        const end = (): void => {
          this.#hanging -= 1;
        };
        running.then(end, end);
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
