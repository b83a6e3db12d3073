import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

let folder: string;
let output: string;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
  output = join(folder, 'output');
});

/** Renders a default avatar, which needs no worker: to a path, where it must come to be unless an error is expected. */
const renderTo = async (path: string): Promise<string> => {
  const { status, stderr } = await runDarkroom(['render', '/avatars/0.png', path]);
  expect(status).toBe(stderr === '' ? 0 : 1);
  return stderr;
};
const isPng = (path: string): boolean => readFileSync(path, 'latin1').startsWith('\x89PNG');

describe('the file that darkroom render writes', () => {
  test('follows a link, and replaces or makes what it leads to', async () => {
    mkdirSync(join(folder, 'there'));
    symlinkSync('there', join(folder, 'folder-link'));
    symlinkSync('../real', join(folder, 'there/second'));
    symlinkSync('folder-link/second', join(folder, 'first'));
    for (const before of [undefined, 'before']) {
      if (before !== undefined) writeFileSync(join(folder, 'real'), before);
      expect(await renderTo(join(folder, 'first'))).toBe('');
      expect(isPng(join(folder, 'real'))).toBe(true);
      expect(readlinkSync(join(folder, 'first'))).toBe('folder-link/second');
      expect(readdirSync(folder).sort()).toEqual(['first', 'folder-link', 'real', 'there']);
    }
  });

  test.each([0o600, 0o664, 0o400])('leaves a file of mode %o its mode', async (mode) => {
    writeFileSync(output, 'before');
    chmodSync(output, mode);
    expect(await renderTo(output)).toBe('');
    expect(isPng(output)).toBe(true);
    expect(statSync(output).mode & 0o7777).toBe(mode);
  });

  test('writes a file whose name is as long as one can be, and to what is no file', async () => {
    const name = 'x'.repeat(255);
    expect(await renderTo(join(folder, name))).toBe('');
    expect(readdirSync(folder)).toEqual([name]);
    expect(await renderTo('/dev/null')).toBe('');
  });

  test.each([
    ['a folder', '.', /\/\. is a folder\n$/],
    ['below no folder', 'a/b.png', /b\.png cannot be written: ENOENT/],
    ['a name that only a folder may have', 'a/', /a\/ cannot be written: ENOTDIR/],
    ['links in a circle', 'circle', /circle cannot be written: too many links\n$/],
  ])('writes nothing to %s', async (_, path, reason) => {
    symlinkSync('circle', join(folder, 'circle'));
    expect(await renderTo(`${folder}/${path}`)).toMatch(reason);
    expect(readdirSync(folder)).toEqual(['circle']);
  });
});
