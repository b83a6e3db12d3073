import { join } from 'node:path';
import { describeReplicas } from '../../support/cdn/replicas.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

// What becomes of a purge whose process is gone: cdn-purges.test.ts. Here are real processes, a directory and time.

describeReplicas('a directory', async () => {
  const { path, list, put } = await useTemporaryDirectory();
  return {
    settings: { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') },
    names: list,
    put,
    listName: 'blocks.jsonl',
  };
});
