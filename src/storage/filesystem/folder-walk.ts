import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile, systemCodeOf } from '../missing-file.ts';
import type { GentlePace } from './throttle.ts';

/** What a walk shows; each of them is awaited before the next. */
export interface FolderVisitor {
  /**
   * A regular file.
   *
   * @param sizeBytes its length
   * @param mtimeMs when it was last changed, in milliseconds since 1970
   */
  file(path: string, sizeBytes: number, mtimeMs: number): Promise<void> | void;
  /** A folder, after all that is in it; the one where the walk begins is none. */
  folder?(path: string): Promise<void> | void;
  /** A folder that must not be read or left; the walk goes on without it. */
  refused?(path: string, error: unknown): void;
}

/** How a walk goes. */
export interface WalkOptions {
  /** Ends the walk. */
  readonly signal?: AbortSignal;
  /** How it rests between stretches of work; without one it does not. */
  readonly pace?: GentlePace;
  /** Is told of each step: a disk that hangs lets none follow. */
  readonly onStep?: () => void;
  /** What names in the folder itself must begin with to be shown; further down all are. */
  readonly namePrefix?: string;
}

/** Entries of a folder that are read at a time, and held in memory. */
const BUFFERED_ENTRIES = 128;

/**
 * Shows the regular files below a folder, in no particular order, with one system call at a time, one
 * open folder per level, and memory that does not grow with their number. Symbolic links are neither
 * followed nor shown, nor is anything else that is neither file nor folder. What vanishes meanwhile is
 * left out; what comes meanwhile may be.
 *
 * @throws Error of a system call, but for refused folders; what a visitor throws; `signal.reason`
 */
export async function walkFolder(
  folder: string,
  visitor: FolderVisitor,
  { signal, pace, onStep, namePrefix = '' }: WalkOptions = {},
): Promise<void> {
  const walk = async (path: string, prefix: string): Promise<void> => {
    for await (const entry of await opendir(path, { bufferSize: BUFFERED_ENTRIES })) {
      signal?.throwIfAborted();
      onStep?.();
      await pace?.step(signal);
      if (!entry.name.startsWith(prefix)) continue;
      const entryPath = join(path, entry.name);
      if (entry.isDirectory()) {
        await unlessMissing(walk(entryPath, ''), visitor, entryPath);
        await visitor.folder?.(entryPath);
      } else if (entry.isFile()) {
        const status = await unlessMissing(lstat(entryPath), visitor, entryPath);
        if (status?.isFile()) await visitor.file(entryPath, status.size, status.mtimeMs);
      }
    }
  };
  await unlessMissing(walk(folder, namePrefix), {}, folder);
}

async function unlessMissing<Result>(
  work: Promise<Result>,
  { refused }: Pick<FolderVisitor, 'refused'>,
  path: string,
): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    const code = systemCodeOf(error);
    if (refused === undefined || (code !== 'EACCES' && code !== 'EPERM')) throw error;
    refused(path, error);
    return undefined;
  }
}
