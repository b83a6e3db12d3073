import type { Dir } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
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
  /** Called at each step, shown or not: a disk that hangs lets none follow. */
  readonly onStep?: () => void;
}

/** Entries of a folder that are read at a time, and held in memory. */
const BUFFERED_ENTRIES = 128;

/**
 * Shows the regular files below a folder, in no particular order, with one open folder per level, and memory
 * that does not grow with their number. There is one system call at a time, and so one file per turn of the
 * event loop: where requests are served, a walk is as slow as they need it to be. Symbolic links are neither
 * followed nor shown, nor is anything else that is neither file nor folder. What vanishes meanwhile is
 * left out; what comes meanwhile may be.
 *
 * Not covered: names that are not UTF-8, and what a folder is swapped for while it is being read. Where the file
 * system does not say what an entry is (some of FUSE and NFS), Node asks for it by a call that keeps the event loop
 * waiting, and what vanishes just then is an error.
 *
 * @throws Error of a system call, but for refused folders; `signal.reason`
 */
export async function* walkFolder(
  folder: string,
  { signal, namePrefix = '', onStep }: WalkOptions = {},
): AsyncGenerator<FolderEntry, void> {
  const first = await unlessMissing(openFolder(folder));
  const open = first === undefined ? [] : [first];
  try {
    for (let current = first; current !== undefined; current = open.at(-1)) {
      signal?.throwIfAborted();
      onStep?.();
      const entry = await current.entries.read();
      if (entry === null) {
        open.pop();
        await current.entries.close();
        if (open.length > 0) yield { kind: 'folder', path: current.path };
        continue;
      }
      if (open.length === 1 && !entry.name.startsWith(namePrefix)) continue;
      const path = join(current.path, entry.name);
      if (entry.isFile()) {
        const status = await unlessMissing(lstat(path));
        if (!status?.isFile()) continue;
        yield { kind: 'file', path, sizeBytes: status.size, mtimeMs: status.mtimeMs };
      } else if (entry.isDirectory()) {
        try {
          const below = await unlessMissing(openFolder(path));
          if (below !== undefined) open.push(below);
        } catch (error) {
          if (!isRefused(error)) throw error;
          yield { kind: 'refused', path, error };
        }
      }
    }
  } finally {
    for (const { entries } of open) await entries.close();
  }
}

interface OpenFolder {
  readonly path: string;
  readonly entries: Dir;
}

async function openFolder(path: string): Promise<OpenFolder> {
  return { path, entries: await opendir(path, { bufferSize: BUFFERED_ENTRIES }) };
}

async function unlessMissing<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}
