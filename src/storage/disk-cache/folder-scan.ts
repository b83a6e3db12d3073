import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../../pipeline/ports.ts';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { FileIndex, FOLDER_COST_BYTES, fileCostBytes } from './file-index.ts';
import type { RenderingFolder } from './rendering-folder.ts';

/** Options of a scan. */
export interface ScanOptions {
  readonly files: RenderingFolder;
  /** Bound of the disk space, in bytes. */
  readonly maxBytes: number;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with the index once all files are counted; from then on, removals must also update the index. */
  readonly onCounted: (index: FileIndex) => void;
}

/** Files that were last used in the same hour, the resolution of their times. */
interface Hour {
  readonly paths: string[];
  readonly costsBytes: number[];
}

const HOUR_MS = 60 * 60 * 1000;

/** Files that are indexed between two turns of the event loop: less than a millisecond of work. */
const FILES_PER_TURN = 500;

/**
 * Scans the renderings in a folder, once, file by file (`walkFolder`): a million of them took 76 s of the main thread's
 * time on a crowded machine, some microseconds at a time. Evicts what is above the bound, the least recently used
 * first, to an hour. Files that are not renderings are left alone, and do not count.
 *
 * @throws Error of a system call; `signal.reason`
 */
export async function scanFolder(options: ScanOptions): Promise<void> {
  const { files, maxBytes, log, signal, onCounted } = options;
  const { resultsPath } = files;
  const startedMs = performance.now();
  const hours = new Map<number, Hour>();
  let found = 0;
  let foreign = 0;
  let costBytes = 0;
  for await (const entry of walkFolder(resultsPath, { signal })) {
    if (entry.kind === 'refused') {
      log.warn(
        { err: entry.error, path: entry.path },
        'a folder of the result store cannot be read',
      );
    } else if (entry.kind === 'folder') {
      costBytes += FOLDER_COST_BYTES;
    } else {
      const path = flatten(entry.path.slice(resultsPath.length + 1));
      if (!isResultPath(path)) {
        foreign += 1;
        continue;
      }
      const cost = fileCostBytes(entry.sizeBytes);
      const hour = Math.floor(entry.mtimeMs / HOUR_MS);
      const sameHour = hours.get(hour) ?? { paths: [], costsBytes: [] };
      hours.set(hour, sameHour);
      sameHour.paths.push(path);
      sameHour.costsBytes.push(cost);
      found += 1;
      costBytes += cost;
    }
  }
  if (foreign > 0) {
    log.warn(
      { files: foreign },
      'files in the result store are no renderings; they are left alone',
    );
  }
  const index = new FileIndex(maxBytes, costBytes);
  onCounted(index);
  await fillIndex(index, hours, options);
  const { heldBytes, evictions } = index.usage;
  const durationMs = Math.round(performance.now() - startedMs);
  log.info({ files: found, evicted: evictions, heldBytes, durationMs }, 'result store scanned');
}

async function fillIndex(
  index: FileIndex,
  hours: Map<number, Hour>,
  { files, log, signal }: ScanOptions,
): Promise<void> {
  let taken = 0;
  let refused: unknown;
  for (const hour of [...hours.keys()].sort((one, other) => one - other)) {
    const { paths, costsBytes } = hours.get(hour) ?? { paths: [], costsBytes: [] };
    hours.delete(hour);
    for (const [at, path] of paths.entries()) {
      if (++taken % FILES_PER_TURN === 0) await nextTurn();
      signal.throwIfAborted();
      index.restore(path, costsBytes[at] ?? 0);
      if (index.usage.heldBytes <= index.maxBytes) continue;
      // Evicts the file that was just added, which is the oldest.
      await index
        .evict((oldest) => files.removeFile(oldest))
        .catch((error: unknown) => {
          refused ??= error;
        });
    }
  }
  if (refused !== undefined) {
    log.warn(
      { err: refused },
      'files of the result store cannot be removed; it is above its bound',
    );
  }
}

/** Copies a path: a slice keeps the whole string in memory, and a concatenation its parts. */
function flatten(path: string): string {
  return Buffer.from(path).toString();
}
