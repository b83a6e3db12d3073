import { join } from 'node:path';
import { describeReplicas } from '../../support/edges/replicas.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

// What becomes of a purge whose process is gone: edge-purges.test.ts. Here are real processes, a folder and time.

describeReplicas('a folder', async () => {
  const { path, list, put } = await useTemporaryFolder();
  return {
    settings: { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') },
    names: list,
    put,
    listName: 'blocks.jsonl',
  };
});
