import type { Config } from '../config/config.ts';
import type { Log, Origin, ResultStore } from '../pipeline/ports.ts';
import { createFilesystemResultStore } from './disk-cache/disk-cache.ts';
import { createFilesystemOrigin } from './filesystem/filesystem-origin.ts';

/**
 * Opens what the originals are in.
 *
 * @throws Error if the folder is gone
 */
export async function openOrigin({
  storage,
  originLimits,
}: Pick<Config, 'storage' | 'originLimits'>): Promise<Origin> {
  if (storage.kind === 'filesystem') return createFilesystemOrigin(storage.folder);
  // Only where it is needed: the SDK takes 0.2 s and 25 MB.
  const { createS3Origin } = await import('./s3/s3-origin.ts');
  return createS3Origin({ ...storage, stallTimeoutMs: originLimits.wholeBodyTimeoutMs });
}

/**
 * Opens what renderings outlive the process in; `undefined` where nothing is set up for that.
 *
 * @param options `isUpkept: false` leaves a folder's bound to the service beside which somebody looks at it
 * @throws Error if the folder cannot be made or read
 */
export async function openResultStore(
  { resultStore }: Pick<Config, 'resultStore'>,
  log: Log,
  { isUpkept }: { readonly isUpkept?: boolean } = {},
): Promise<ResultStore | undefined> {
  if (resultStore?.kind === 'filesystem') {
    return createFilesystemResultStore({ ...resultStore, log, isUpkept });
  }
  if (resultStore === undefined) return undefined;
  const { createS3ResultStore } = await import('./s3/s3-result-store.ts');
  return createS3ResultStore(resultStore);
}
