import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { describeOrigin } from './origin.contract.ts';

describeOrigin('filesystem', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-origin-'));
  return {
    origin: await createFilesystemOrigin(folder),
    put: async (key, bytes) => {
      await mkdir(dirname(join(folder, key)), { recursive: true });
      await writeFile(join(folder, key), bytes);
    },
    remove: (key) => rm(join(folder, key)),
    close: () => rm(folder, { recursive: true }),
  };
});
