import type { Config } from '../config/config.ts';
import { originFolders } from '../contract/resources.ts';
import type { OriginalWriter } from '../pipeline/originals/original-writer.ts';
import type { Log, OriginListing, ResultStore, Source } from '../pipeline/ports.ts';
import { createDiskCache, openFolderBeside } from './disk-cache/disk-cache.ts';
import { createFilesystemOrigin } from './filesystem/origin.ts';
import { StorageMarker } from './filesystem/root-folder.ts';
import type { S3Listing } from './s3/s3-listing.ts';

/** Returns the marker of the folder of the originals, if one is configured. */
export function openMarker({ storage }: Pick<Config, 'storage'>): StorageMarker | undefined {
  if (storage.kind !== 'filesystem' || storage.marker === undefined) return undefined;
  return new StorageMarker(storage.folder, storage.marker);
}

/**
 * @param marker of the folder
 * @throws Error if the folder is missing
 */
export async function openOrigin(
  config: Pick<Config, 'storage' | 'originLimits'>,
  marker = openMarker(config),
): Promise<Source> {
  const { storage, originLimits } = config;
  if (storage.kind === 'filesystem') return createFilesystemOrigin(storage.folder, marker);
  // Loaded on demand: the SDK takes 0.2 s and 25 MB.
  const { S3Origin } = await import('./s3/s3-origin.ts');
  return new S3Origin({ ...storage, stallTimeoutMs: originLimits.wholeBodyTimeoutMs });
}

/** @throws Error if the folder is missing */
export async function openListing({
  storage,
}: Pick<Config, 'storage'>): Promise<OriginListing | S3Listing> {
  if (storage.kind === 'filesystem') {
    const { createFilesystemListing } = await import('./filesystem/listing.ts');
    return createFilesystemListing(storage.folder);
  }
  const { S3Listing } = await import('./s3/s3-listing.ts');
  // The folders of all kinds are listed concurrently.
  return new S3Listing({ ...storage, maxConnections: originFolders.length });
}

/**
 * @param marker of the folder
 * @param connections bound of connections to a bucket; by default that for reading
 * @throws Error if the folder is missing
 */
export async function openOriginalWriter(
  config: Pick<Config, 'storage'>,
  marker = openMarker(config),
  connections: { readonly maxConnections?: number } = {},
): Promise<OriginalWriter> {
  const { storage } = config;
  if (storage.kind === 'filesystem') {
    const adapter = await import('./filesystem/writer.ts');
    return adapter.createFilesystemOriginalWriter(storage.folder, marker);
  }
  const { S3OriginalWriter } = await import('./s3/s3-original-writer.ts');
  return new S3OriginalWriter({ ...storage, ...connections });
}

/**
 * Opens the store of renderings that outlives the process; returns `undefined` if none is configured.
 *
 * @throws Error if the folder cannot be created or read
 */
export async function openResultStore(
  { resultStore }: Pick<Config, 'resultStore'>,
  log: Log,
): Promise<ResultStore | undefined> {
  if (resultStore?.kind === 'filesystem') return createDiskCache({ ...resultStore, log });
  return openSharedStore(resultStore);
}

/**
 * Opens the store for a check beside the service: a folder is neither locked nor bounded, and nothing in it is evicted.
 *
 * @throws Error if the folder cannot be created or read
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
