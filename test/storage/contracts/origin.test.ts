import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { openFolderStorage } from '../../support/folder-storage.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3Fixture } from '../../support/s3/s3-bucket.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeOrigin } from './origin.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3();
  return server.close;
});

describeOrigin('memory', async () => {
  const origin = new MemoryOrigin();
  return {
    origin,
    put: async (key, bytes) => origin.put(key, bytes, new Date()),
    remove: async (key) => origin.delete(key),
    close: async () => undefined,
  };
});

describeOrigin('filesystem', async () => {
  const folder = await makeTemporaryFolder();
  const { origin } = await openFolderStorage(folder.path);
  return {
    origin,
    put: folder.put,
    remove: (key) => rm(join(folder.path, key)),
    close: folder.remove,
  };
});

describeOrigin('s3', async () => createS3Fixture(server));
