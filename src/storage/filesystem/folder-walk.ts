import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile, isRefused } from './system-errors.ts';

/** What a walk finds. */
export type FolderEntry =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly sizeBytes: number;
      /** When it was last changed, in milliseconds since 1970. */
      readonly mtimeMs: number;
    }
  /** A folder, after all that is in it; the one where the walk begins is not shown. */
  | { readonly kind: 'folder'; readonly path: string }
  /** A folder that must not be read; the walk goes on without it. */
  | { readonly kind: 'refused'; readonly path: string; readonly error: unknown };

/** How a walk goes. */
export interface WalkOptions {
  readonly signal?: AbortSignal;
  /** What names in the folder itself must begin with to be shown; further down all are. */
  readonly namePrefix?: string;
  /** Called before each system call but the first: a disk that hangs lets none follow. */
  readonly onStep?: () => void;
}

/**
 * Shows the regular files below a folder, in no particular order. It holds the names of one folder per level: 300 000
 * of them took 40 MB, and 64 ms of the main thread. Else there is one system call at a time, and so one file per turn
 * of the event loop: where requests are served, a walk is as slow as they need it to be. Symbolic links are neither
 * followed nor shown, nor is anything else that is neither file nor folder. What vanishes meanwhile is
 * left out; what comes meanwhile may be.
 *
 * Node's `Dir` would hold fewer names, but where the file system does not say what an entry is (some of FUSE and NFS),
 * it asks by a call that keeps the event loop waiting, and fails for what vanishes just then. So all names of a folder
 * are one step, and a disk that is slow to tell a million of them may be taken to hang; it tells them faster the next time.
 *
 * Not covered: names that are not UTF-8, and what a folder is swapped for while it is being read.
 *
 * @throws Error of a system call, but for refused folders; `signal.reason`
 */
export async function* walkFolder(
  folder: string,
  { signal, namePrefix = '', onStep }: WalkOptions = {},
): AsyncGenerator<FolderEntry, void> {
  const top = await unlessMissing(readdir(folder));
  if (top === undefined) return;
  const unfinished = [{ path: folder, names: top.filter((name) => name.startsWith(namePrefix)) }];
  for (let current = unfinished.at(-1); current !== undefined; current = unfinished.at(-1)) {
    signal?.throwIfAborted();
    onStep?.();
    const name = current.names.pop();
    if (name === undefined) {
      unfinished.pop();
      if (unfinished.length > 0) yield { kind: 'folder', path: current.path };
      continue;
    }
    const path = join(current.path, name);
    const status = await unlessMissing(lstat(path));
    if (status?.isFile()) {
      yield { kind: 'file', path, sizeBytes: status.size, mtimeMs: status.mtimeMs };
    } else if (status?.isDirectory()) {
      try {
        const names = await unlessMissing(readdir(path));
        if (names !== undefined) unfinished.push({ path, names });
      } catch (error) {
        if (!isRefused(error)) throw error;
        yield { kind: 'refused', path, error };
      }
    }
  }
}

async function unlessMissing<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}
