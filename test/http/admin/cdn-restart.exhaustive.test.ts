import { join } from 'node:path';
import { describeReplicas } from '../../support/cdn/replicas.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

// Real processes, files and time; cdn-purges.test.ts covers the other cases of a killed process.

describeReplicas('a directory', async () => {
  const { path, list, put } = await useTemporaryDirectory();
  return {
    settings: { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') },
    names: list,
    put,
    listName: 'blocks.jsonl',
  };
});
