import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Backend } from '../backend.ts';
import { openResultFolder } from '../results/directory.ts';
import { createFilesystemListing, createFilesystemOrigin } from './origin.ts';
import { RootFolder, StorageMarker } from './root-folder.ts';
import { FolderObjects } from './shared-objects.ts';
import { createFilesystemWriter } from './writer.ts';

export const filesystem: Backend<'filesystem'> = {
  openOriginals: async ({ folder, marker: name }) => {
    const marker = name === undefined ? undefined : new StorageMarker(folder, name);
    await marker?.check();
    const root = await RootFolder.open(folder, marker);
    return {
      origin: createFilesystemOrigin(root),
      marker,
      openListing: () => createFilesystemListing(root),
      openWriter: () => createFilesystemWriter(root),
      remove: (key) => unlink(join(folder, key)),
    };
  },
  openResults: async (place, log, isInUse) => {
    const folder = await openResultFolder(place.folder, place.maxBytes, log);
    if (!isInUse) void folder.sweep();
    return folder;
  },
  openShared: ({ file }) => FolderObjects.open(file),
};
