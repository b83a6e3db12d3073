import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createFilesystemListing } from '../../../src/storage/filesystem/filesystem-listing.ts';
import { describeOriginListing } from './origin-listing.contract.ts';

describeOriginListing('filesystem', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-listing-'));
  return {
    listing: await createFilesystemListing(folder),
    put: async (key, bytes) => {
      await mkdir(dirname(join(folder, key)), { recursive: true });
      await writeFile(join(folder, key), bytes);
    },
    close: () => rm(folder, { recursive: true }),
  };
});
