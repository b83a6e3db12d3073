import { beforeAll } from 'vitest';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { openFolder } from '../../support/result-folder/result-folder.ts';
import { type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { createS3ResultFixture } from '../../support/s3/s3-bucket.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeResultStore } from './result-store.contract.ts';

let server: LocalS3;
beforeAll(async () => {
  server = await startLocalS3({ allowMismatchedSignatures: true });
  return server.close;
});

describeResultStore('memory', async () => ({
  store: new MemoryResultStore(),
  close: async () => undefined,
}));

describeResultStore('a folder', async () => {
  const { path, remove } = await makeTemporaryFolder();
  return { store: await openFolder({ folder: path, maxBytes: 100_000_000 }), close: remove };
});

describeResultStore('s3', async () => createS3ResultFixture(server));
