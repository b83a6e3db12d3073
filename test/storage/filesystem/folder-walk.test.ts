import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type FolderEntry, walkFolder } from '../../../src/storage/filesystem/folder-walk.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';

describe('a walk', () => {
  let folder: TemporaryFolder;
  beforeEach(async () => {
    folder = await useTemporaryFolder();
  });

  /** What a walk shows, below the folder. */
  const walk = async (options?: Parameters<typeof walkFolder>[1], below = '') => {
    const shown: string[] = [];
    for await (const entry of walkFolder(join(folder.path, below), options)) {
      shown.push(`${entry.kind} ${entry.path.slice(folder.path.length + 1)}`);
    }
    return shown.sort();
  };

  test('shows files with their sizes and times, and folders, but no links', async () => {
    await folder.put('a/b/one', '1');
    await folder.put('a/two', '22');
    await mkdir(join(folder.path, 'nothing'));
    await symlink(folder.path, join(folder.path, 'loop'));
    await symlink(join(folder.path, 'a/two'), join(folder.path, 'link'));
    const shown = ['file a/b/one', 'file a/two', 'folder a', 'folder a/b', 'folder nothing'];
    expect(await walk()).toEqual(shown);
    const entries: FolderEntry[] = [];
    for await (const entry of walkFolder(join(folder.path, 'a/b'))) entries.push(entry);
    expect(entries).toEqual([
      {
        kind: 'file',
        path: join(folder.path, 'a/b/one'),
        sizeBytes: 1,
        mtimeMs: expect.closeTo(Date.now(), -5),
      },
    ]);
  });

  test('shows a folder after all that is in it', async () => {
    for (const name of ['a/b/one', 'a/c/two', 'a/three']) await folder.put(name, 'x');
    const seen: string[] = [];
    for await (const { path } of walkFolder(folder.path)) {
      expect(seen.some((earlier) => path.startsWith(`${earlier}/`))).toBe(false);
      seen.push(path);
    }
    expect(seen.at(-1)).toBe(join(folder.path, 'a'));
  });

  test('shows what begins with a text, in the folder where it begins', async () => {
    for (const name of ['ab/x', 'a', 'b/a']) await folder.put(name, 'x');
    expect(await walk({ namePrefix: 'a' })).toEqual(['file a', 'file ab/x', 'folder ab']);
  });

  test('shows nothing of a folder that is not there, or is a file', async () => {
    await folder.put('file', 'x');
    expect(await walk({}, 'none')).toEqual([]);
    expect(await walk({}, 'file')).toEqual([]);
  });

  test('ends with its signal, and with the loop that reads it', async () => {
    await folder.put('a/one', 'x');
    await expect(walk({ signal: AbortSignal.abort(new Error('closed')) })).rejects.toThrow(
      'closed',
    );
    for await (const entry of walkFolder(folder.path)) {
      expect(entry.kind).toBe('file');
      break;
    }
  });

  test('takes a step for each entry that may be shown', async () => {
    for (const name of ['a', 'b', 'c']) await folder.put(name, 'x');
    let steps = 0;
    const onStep = (): void => {
      steps += 1;
    };
    await walk({ onStep });
    expect(steps).toBeGreaterThanOrEqual(3);
  });
});
