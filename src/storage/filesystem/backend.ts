import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Backend } from '../backend.ts';
import { openResultDirectory } from '../results/directory.ts';
import { createFilesystemListing, createFilesystemOrigin } from './origin.ts';
import { RootDirectory, StorageMarker } from './root-directory.ts';
import { DirectoryObjects } from './shared-objects.ts';
import { createFilesystemWriter } from './writer.ts';

export const filesystem: Backend<'filesystem'> = {
  openOriginals: async ({ directory, marker: name }) => {
    const marker = name === undefined ? undefined : new StorageMarker(directory, name);
    await marker?.check();
    const root = await RootDirectory.open(directory, marker);
    return {
      origin: createFilesystemOrigin(root),
      marker,
      openListing: () => createFilesystemListing(root),
      openWriter: () => createFilesystemWriter(root),
      remove: (key) => unlink(join(directory, key)),
    };
  },
  openResults: async (location, log, isInUse) => {
    const directory = await openResultDirectory(location.directory, location.maxBytes, log);
    if (!isInUse) void directory.sweep();
    return directory;
  },
  openShared: ({ file }) => DirectoryObjects.open(file),
};
