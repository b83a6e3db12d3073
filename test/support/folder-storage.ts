import type { AppParts } from '../../src/app.ts';
import type { OriginListing } from '../../src/pipeline/ports.ts';
import { createFilesystemListing } from '../../src/storage/filesystem/listing.ts';
import {
  createFilesystemOrigin,
  type FilesystemOrigin,
} from '../../src/storage/filesystem/origin.ts';
import { StorageMarker } from '../../src/storage/filesystem/root-folder.ts';
import { createFilesystemOriginalWriter } from '../../src/storage/filesystem/writer.ts';

/** Writes originals. */
export type OriginalWriter = NonNullable<AppParts['originalWriter']>;

/** Originals in a folder, by the ports that the service has for them. */
export interface FolderStorage {
  readonly origin: FilesystemOrigin;
  readonly listing: OriginListing;
  readonly writer: OriginalWriter;
}

/** @param marker name of the file without which nothing is known to be missing */
export async function openFolderStorage(folder: string, marker?: string): Promise<FolderStorage> {
  const storageMarker = marker === undefined ? undefined : new StorageMarker(folder, marker);
  return {
    origin: await createFilesystemOrigin(folder, storageMarker),
    listing: await createFilesystemListing(folder),
    writer: await createFilesystemOriginalWriter(folder, storageMarker),
  };
}
