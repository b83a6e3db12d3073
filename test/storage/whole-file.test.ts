import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeWholeFile } from '../../src/storage/filesystem/whole-file.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

test('a file whose group cannot be kept is for no group', async () => {
  const { path: root } = await useTemporaryFolder();
  const path = join(root, 'file');
  const before = await stat(root);
  for (const [gid, mode] of [
    [before.gid, 0o664],
    [-1, 0o604], // to chown, the group as it is; to us, a group that it has not become
  ]) {
    const accessAs = Object.assign(await stat(root), { gid, mode: 0o6664 });
    await writeWholeFile([Buffer.from('x')], {
      path,
      temporaryPath: join(root, 'new'),
      root,
      accessAs,
    });
    expect((await stat(path)).mode & 0o7777).toBe(mode);
  }
});
