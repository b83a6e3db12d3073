import type { Config } from '../config/config.ts';
import type { Log, Origin, ResultStore } from '../pipeline/ports.ts';
import { createDiskCache, openFolderBeside } from './disk-cache/disk-cache.ts';
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
 * @throws Error if the folder cannot be made or read
 */
export async function openResultStore(
  { resultStore }: Pick<Config, 'resultStore'>,
  log: Log,
): Promise<ResultStore | undefined> {
  if (resultStore?.kind === 'filesystem') return createDiskCache({ ...resultStore, log });
  return openSharedStore(resultStore);
}

/**
 * The same for somebody who looks at it beside the service: a folder is neither locked nor bounded, and nothing in
 * it is evicted.
 *
 * @throws Error if the folder cannot be made or read
 */
export async function openResultStoreBeside({
  resultStore,
}: Pick<Config, 'resultStore'>): Promise<ResultStore | undefined> {
  if (resultStore?.kind === 'filesystem') return openFolderBeside(resultStore);
  return openSharedStore(resultStore);
}

type SharedStore = Exclude<Config['resultStore'], { readonly kind: 'filesystem' }>;

async function openSharedStore(store: SharedStore): Promise<ResultStore | undefined> {
  if (store === undefined) return undefined;
  const { createS3ResultStore } = await import('./s3/s3-result-store.ts');
  return createS3ResultStore(store);
}
