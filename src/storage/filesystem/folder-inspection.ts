import { opendir, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { systemCodeOf } from '../missing-file.ts';
import type { StorageListing } from '../storage-listing.ts';

/** Why a folder below the first one is left out. */
const LEFT_OUT: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'ENOENT']);

/**
 * Lists the first files below a folder, links aside, in the order in which the system gives them.
 *
 * @throws signal.reason
 */
export async function listFolder(
  folder: string,
  maxKeys: number,
  signal: AbortSignal,
): Promise<StorageListing> {
  const keys: string[] = [];
  try {
    const root = await realpath(folder);
    for await (const path of walk(root, signal)) {
      if (keys.length === maxKeys) return { kind: 'listed', keys, isPart: true };
      keys.push(relative(root, path).split(sep).join('/'));
    }
    return { kind: 'listed', keys, isPart: false };
  } catch (cause) {
    signal.throwIfAborted();
    return { kind: 'failed', cause, isDenied: systemCodeOf(cause) === 'EACCES' };
  }
}

async function* walk(folder: string, signal: AbortSignal): AsyncGenerator<string> {
  for await (const entry of await opendir(folder)) {
    signal.throwIfAborted();
    const path = join(folder, entry.name);
    if (entry.isFile()) yield path;
    if (!entry.isDirectory()) continue;
    try {
      yield* walk(path, signal);
    } catch (error) {
      // The service does not read there either, `lost+found` for example; or it has just gone.
      if (!LEFT_OUT.has(systemCodeOf(error))) throw error;
    }
  }
}
