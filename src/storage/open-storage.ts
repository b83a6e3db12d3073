import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { contractResources } from '../contract/resources.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import type { OriginalWriter } from '../pipeline/originals/original-writer.ts';
import type { Log, OriginListing, ResultStore, Source } from '../pipeline/ports.ts';
import { createFilesystemListing, createFilesystemOrigin } from './filesystem/origin.ts';
import { RootFolder, StorageMarker } from './filesystem/root-folder.ts';
import { openResultFolder } from './results/folder.ts';

/** Returns the marker of the folder of the originals, if one is configured. */
export function openMarker({ storage }: Pick<Config, 'storage'>): StorageMarker | undefined {
  if (storage.kind !== 'filesystem' || storage.marker === undefined) return undefined;
  return new StorageMarker(storage.folder, storage.marker);
}

/** Opens the source of originals, or that of uploads. @throws Error if the folder is missing */
export async function openOrigin(
  config: Pick<Config, 'storage' | 'originLimits'>,
  marker = openMarker(config),
): Promise<Source> {
  const { storage, originLimits } = config;
  if (storage.kind === 'filesystem') {
    return createFilesystemOrigin(await RootFolder.open(storage.folder, marker));
  }
  // Loaded on demand: the SDK takes 0.2 s and 25 MB.
  const { createS3Origin } = await import('./s3/origin.ts');
  return createS3Origin({ ...storage, stallTimeoutMs: originLimits.wholeBodyTimeoutMs });
}

/** @throws Error if the folder is missing */
export async function openListing({ storage }: Pick<Config, 'storage'>): Promise<OriginListing> {
  if (storage.kind === 'filesystem') {
    return createFilesystemListing(await RootFolder.open(storage.folder));
  }
  const { createS3Listing } = await import('./s3/listing.ts');
  // The folders of all kinds are listed concurrently.
  return createS3Listing({ ...storage, maxConnections: contractResources.originFolders.length });
}

/**
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
    const { createFilesystemWriter } = await import('./filesystem/writer.ts');
    return createFilesystemWriter(await RootFolder.open(storage.folder, marker));
  }
  const { S3OriginalWriter } = await import('./s3/writer.ts');
  return new S3OriginalWriter({ ...storage, ...connections });
}

/**
 * Opens the result store; returns `undefined` if none is configured.
 *
 * @param isBeside whether the service may be using the store as well: then a folder is not swept
 * @throws Error if the folder cannot be created or read
 */
export async function openResultStore(
  { resultStore }: Pick<Config, 'resultStore'>,
  log: Log,
  { isBeside = false } = {},
): Promise<ResultStore | undefined> {
  if (resultStore === undefined) return undefined;
  if (resultStore.kind === 'filesystem') {
    const folder = await openResultFolder({ ...resultStore, log });
    if (!isBeside) void folder.sweep();
    return folder;
  }
  const { S3ResultStore } = await import('./s3/s3-result-store.ts');
  return new S3ResultStore(resultStore);
}

/** Removes an upload. @throws Error if the storage refuses or does not respond within `timeoutMs` */
export async function removeUpload(
  uploads: NonNullable<Config['uploads']>,
  key: string,
  timeoutMs: number,
): Promise<void> {
  if (uploads.kind === 'filesystem') return unlink(join(uploads.folder, key));
  const { S3Objects } = await import('./s3/shared-objects.ts');
  return new S3Objects({ ...uploads, key, timeoutMs }).remove('');
}

/** Opens the place of the list of blocks. @throws Error if its folder is missing */
export async function openSharedObjects({
  place,
}: Pick<NonNullable<Config['blocklist']>, 'place'>): Promise<SharedObjects> {
  if (place.kind === 'filesystem') {
    const { FolderObjects } = await import('./filesystem/shared-objects.ts');
    return FolderObjects.open(place.file);
  }
  const { S3Objects } = await import('./s3/shared-objects.ts');
  return new S3Objects(place);
}
