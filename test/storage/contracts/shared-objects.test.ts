import { link, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFolderObjects } from '../../support/folder-storage.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { describeSharedObjects } from './shared-objects.contract.ts';

describeSharedObjects('a folder', async () => {
  return openFolderObjects(join((await useTemporaryFolder()).path, 'blocks.jsonl'));
});

test('the next writer of a shared object completes what a killed process had begun', async () => {
  const { path } = await useTemporaryFolder();
  const file = join(path, 'blocks.jsonl');
  const objects = await openFolderObjects(file);
  const tag = (await objects.write('', Buffer.from('one'), 'absent')) ?? '';
  await writeFile(join(path, 'claimed'), 'two');
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(join(path, 'claimed'), longAgo, longAgo);
  await link(join(path, 'claimed'), `${file}.next-${tag}`);
  expect(await objects.write('', Buffer.from('three'), { tag })).toBeUndefined();
  const found = await objects.read('');
  expect(Buffer.from(found?.bytes ?? []).toString()).toBe('two');
  expect(await objects.list('')).toEqual([]);
  expect(await objects.write('', Buffer.from('three'), { tag: found?.tag ?? '' })).toEqual(
    expect.any(String),
  );
});
