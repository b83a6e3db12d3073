import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findRealPath, openRegularFile } from '../../../src/storage/filesystem/opened-file.ts';

describe.each([
  { system: 'a system with /proc', findPath: undefined },
  { system: 'any system', findPath: findRealPath },
])('on $system', ({ findPath }) => {
  let folder: string;

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'darkroom-opened-')));
    await mkdir(join(folder, 'inside'));
    await writeFile(join(folder, 'inside/file'), 'content');
  });
  afterEach(() => rm(folder, { recursive: true }));

  const read = async (path: string): Promise<string | undefined> => {
    const opened = await openRegularFile(join(folder, path), findPath);
    if (opened === undefined) return undefined;
    const text = await opened.file.readFile('utf8');
    await opened.file.close();
    expect(Number(opened.status.size)).toBe(text.length);
    return text;
  };

  test('a regular file is opened', async () => {
    expect(await read('inside/file')).toBe('content');
  });

  test('what a link leads to is not, wherever the link is', async () => {
    await symlink(join(folder, 'inside'), join(folder, 'link'));
    expect(await read('link/file')).toBeUndefined();
    await symlink('file', join(folder, 'inside/link'));
    await expect(read('inside/link')).rejects.toMatchObject({ code: 'ELOOP' });
  });

  test('a folder is not', async () => {
    expect(await read('inside')).toBeUndefined();
  });
});

test('a file that is replaced in the moment it is opened is read as its new self', async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'darkroom-opened-')));
  const path = join(folder, 'file');
  await writeFile(path, 'old');
  let looks = 0;
  const opened = await openRegularFile(path, async (file) => {
    looks += 1;
    if (looks === 1) {
      await writeFile(join(folder, 'new'), 'new');
      await rename(join(folder, 'new'), path);
    }
    return findRealPath(file, path);
  });
  expect(await opened?.file.readFile('utf8')).toBe('new');
  await opened?.file.close();
  await rm(folder, { recursive: true });
});
