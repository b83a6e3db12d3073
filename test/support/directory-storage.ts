import type { AppParts } from '../../src/app.ts';
import {
  createFilesystemListing,
  createFilesystemOrigin,
} from '../../src/storage/filesystem/origin.ts';
import { RootDirectory, StorageMarker } from '../../src/storage/filesystem/root-directory.ts';
import { createFilesystemWriter } from '../../src/storage/filesystem/writer.ts';

export { DirectoryObjects } from '../../src/storage/filesystem/shared-objects.ts';

export type OriginalWriter = NonNullable<AppParts['originalWriter']>;

/** Opens a directory of originals. While the file `marker`, if set, does not exist, no original is reported as missing. */
export async function openDirectoryStorage(directory: string, marker?: string) {
  const storageMarker = marker === undefined ? undefined : new StorageMarker(directory, marker);
  const root = await RootDirectory.open(directory, storageMarker);
  return {
    origin: createFilesystemOrigin(root),
    listing: createFilesystemListing(root),
    writer: createFilesystemWriter(root),
  };
}
