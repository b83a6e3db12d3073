import { mkdtempSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { createFilesystemOriginalWriter } from '../../../src/storage/filesystem/filesystem-original-writer.ts';
import { describeOriginalWriter } from './original-writer.contract.ts';

describeOriginalWriter('the filesystem writer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-'));
  return {
    writer: await createFilesystemOriginalWriter(folder),
    origin: await createFilesystemOrigin(folder),
    list: async () => {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
    },
    close: () => rm(folder, { recursive: true }),
  };
});
