import { readFileSync } from 'node:fs';

/** Most connections without a setting: an idle one was seen to take 11 kB, one of TLS 57 to 77 kB. */
const MAX_BY_DEFAULT = 16_384;

/** Files of the process itself: the program, the log, a start of a worker, those just being closed. */
const OWN_FILES = 128;

/** Where the system does not tell; macOS has as many at least. */
const ASSUMED_FILES = 10_240;

/** How many connections there may be, so that files never run out. */
export interface ConnectionBudget {
  readonly byDefault: number;
  readonly most: number;
}

/**
 * Of the files that a process may have open, connections get what the rest does not need. Without a
 * bound, the storage fails when clients are many, and the pool of workers cannot replace one.
 *
 * @param otherFiles what the rest of the service holds open: workers, files or connections of the storage
 * @param openFilesLimit `undefined` where it is not known
 */
export function planConnections(
  otherFiles: number,
  openFilesLimit: number | undefined = readOpenFilesLimit(),
): ConnectionBudget {
  const most = Math.max(2, (openFilesLimit ?? ASSUMED_FILES) - OWN_FILES - otherFiles);
  return { byDefault: Math.min(most, MAX_BY_DEFAULT), most };
}

/**
 * The limit of open files of this process, sockets included; `undefined` where the system does not tell
 * (Linux does, proc(5)). Node raises the soft limit to the hard one at its start.
 */
export function readOpenFilesLimit(
  readText: (path: string) => string = readUtf8,
): number | undefined {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readText('/proc/self/limits'))?.[1];
    return limit === undefined ? undefined : Number(limit.replace('unlimited', 'Infinity'));
  } catch {
    return undefined;
  }
}

function readUtf8(path: string): string {
  return readFileSync(path, 'utf8');
}
