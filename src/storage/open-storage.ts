import type { Config } from '../config/config.ts';
import { originFolders } from '../contract/resources.ts';
import type { OriginalWriter } from '../pipeline/originals/original-writer.ts';
import type { Log, Origin, OriginListing, ResultStore } from '../pipeline/ports.ts';
import { createDiskCache, openFolderBeside } from './disk-cache/disk-cache.ts';
import { createFilesystemOrigin } from './filesystem/filesystem-origin.ts';
import { StorageMarker } from './filesystem/storage-marker.ts';
import type { S3Listing } from './s3/s3-listing.ts';

/** The marker of the folder of the originals, if there is to be one. */
export function openMarker({ storage }: Pick<Config, 'storage'>): StorageMarker | undefined {
  if (storage.kind !== 'filesystem' || storage.marker === undefined) return undefined;
  return new StorageMarker(storage.folder, storage.marker);
}

/**
 * @param marker of its folder
 * @throws Error if the folder is gone
 */
export async function openOrigin(
  config: Pick<Config, 'storage' | 'originLimits'>,
  marker = openMarker(config),
): Promise<Origin> {
  const { storage, originLimits } = config;
  if (storage.kind === 'filesystem') return createFilesystemOrigin(storage.folder, marker);
  // Only where it is needed: the SDK takes 0.2 s and 25 MB.
  const { S3Origin } = await import('./s3/s3-origin.ts');
  return new S3Origin({ ...storage, stallTimeoutMs: originLimits.wholeBodyTimeoutMs });
}

/** @throws Error if the folder is gone */
export async function openListing({
  storage,
}: Pick<Config, 'storage'>): Promise<OriginListing | S3Listing> {
  if (storage.kind === 'filesystem') {
    const { createFilesystemListing } = await import('./filesystem/filesystem-listing.ts');
    return createFilesystemListing(storage.folder);
  }
  const { S3Listing } = await import('./s3/s3-listing.ts');
  // The folders of all kinds are listed at once.
  return new S3Listing({ ...storage, maxConnections: originFolders.length });
}

/**
 * @param marker of its folder
 * @param connections to a bucket, at most; as many as for reading where it is not said
 * @throws Error if the folder is gone
 */
export async function openOriginalWriter(
  config: Pick<Config, 'storage'>,
  marker = openMarker(config),
  connections: { readonly maxConnections?: number } = {},
): Promise<OriginalWriter> {
  const { storage } = config;
  if (storage.kind === 'filesystem') {
    const adapter = await import('./filesystem/filesystem-original-writer.ts');
    return adapter.createFilesystemOriginalWriter(storage.folder, marker);
  }
  const { S3OriginalWriter } = await import('./s3/s3-original-writer.ts');
  return new S3OriginalWriter({ ...storage, ...connections });
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
 * The same for a look at it beside the service: a folder is neither locked nor bounded, and nothing in it is
 * evicted.
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
  const { S3ResultStore } = await import('./s3/s3-result-store.ts');
  return new S3ResultStore(store);
}
