import { rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  closeFile,
  findRealPath,
  openRegularFile,
  readBytes,
} from '../../../src/storage/filesystem/opened-file.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

let folder: string;
beforeEach(async () => {
  const temporary = await useTemporaryFolder();
  folder = temporary.path;
  await temporary.put('inside/file', 'content');
});

const read = async (...[path, findPath]: Parameters<typeof openRegularFile>) => {
  const opened = await openRegularFile(join(folder, path), findPath);
  if (opened === undefined) return undefined;
  const text = String(await readBytes(opened, 0, Number(opened.status.size)));
  closeFile(opened);
  expect(Number(opened.status.size)).toBe(text.length);
  return text;
};

describe.each([
  ['a system with /proc', undefined],
  ['any system', findRealPath],
])('on %s', (_, findPath) => {
  test('a regular file is opened, and no folder', async () => {
    expect(await read('inside/file', findPath)).toBe('content');
    expect(await read('inside', findPath)).toBeUndefined();
  });

  test('what a link leads to is not, wherever the link is', async () => {
    await symlink(join(folder, 'inside'), join(folder, 'link'));
    expect(await read('link/file', findPath)).toBeUndefined();
    await symlink('file', join(folder, 'inside/link'));
    await expect(read('inside/link', findPath)).rejects.toMatchObject({ code: 'ELOOP' });
  });
});

test('a file that is replaced in the moment it is opened is read as its new self', async () => {
  let looks = 0;
  const text = await read('inside/file', async (file, path) => {
    looks += 1;
    if (looks === 1) {
      await writeFile(join(folder, 'new'), 'new');
      await rename(join(folder, 'new'), path);
    }
    return findRealPath(file, path);
  });
  expect(text).toBe('new');
});
