import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFilesystemResultStore } from '../../../src/storage/disk-cache/disk-cache.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { describeResultStore } from './result-store.contract.ts';

describeResultStore('filesystem', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-results-'));
  const maxBytes = 100_000_000;
  return {
    store: await createFilesystemResultStore({ folder, maxBytes, log: new RecordedLog() }),
    close: () => rm(folder, { recursive: true }),
  };
});
