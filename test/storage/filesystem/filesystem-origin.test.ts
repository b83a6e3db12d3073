import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Origin } from '../../../src/pipeline/ports.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';

const signal = new AbortController().signal;

describe('the filesystem origin', () => {
  let folder: string;
  let root: string;
  let origin: Origin;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-filesystem-'));
    root = join(folder, 'root');
    await mkdir(join(root, 'avatars/1'), { recursive: true });
    await writeFile(join(root, 'avatars/1/ab12'), 'inside');
    await mkdir(join(folder, 'outside/1'), { recursive: true });
    await writeFile(join(folder, 'outside/1/secret'), 'secret');
    origin = await createFilesystemOrigin(root);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const codeOf = (key: string): Promise<unknown> =>
    origin.read(key, { signal }).then(
      ({ body }) => {
        body.destroy();
        return 'read';
      },
      (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
    );

  test('serves what is inside', async () => {
    expect(await codeOf('avatars/1/ab12')).toBe('read');
  });

  test('follows no link to a file, not even to one inside', async () => {
    await symlink(join(folder, 'outside/1/secret'), join(root, 'avatars/1/out'));
    await symlink(join(root, 'avatars/1/ab12'), join(root, 'avatars/1/in'));
    await symlink('nowhere', join(root, 'avatars/1/dangling'));
    expect(await codeOf('avatars/1/out')).toBe('UNKNOWN_MEDIA');
    expect(await codeOf('avatars/1/in')).toBe('UNKNOWN_MEDIA');
    expect(await codeOf('avatars/1/dangling')).toBe('UNKNOWN_MEDIA');
  });

  test('follows no link to a folder', async () => {
    await symlink(join(folder, 'outside'), join(root, 'icons'));
    await symlink(join(root, 'avatars'), join(root, 'banners'));
    expect(await codeOf('icons/1/secret')).toBe('UNKNOWN_MEDIA');
    expect(await codeOf('banners/1/ab12')).toBe('UNKNOWN_MEDIA');
  });

  test('is not led out by a key that no parser would have made', async () => {
    expect(await codeOf('../outside/1/secret')).toBe('UNKNOWN_MEDIA');
    expect(await codeOf('avatars/../../outside/1/secret')).toBe('UNKNOWN_MEDIA');
  });

  test('serves regular files alone, and does not hang on a pipe', async () => {
    execFileSync('mkfifo', [join(root, 'avatars/1/pipe')]);
    expect(await codeOf('avatars/1/pipe')).toBe('UNKNOWN_MEDIA');
    expect(await codeOf('avatars/1')).toBe('UNKNOWN_MEDIA');
  });

  test('may itself be reached through a link', async () => {
    await symlink(root, join(folder, 'link'));
    origin = await createFilesystemOrigin(join(folder, 'link'));
    expect(await codeOf('avatars/1/ab12')).toBe('read');
  });

  test('that is gone is a failing origin, not a missing object', async () => {
    await rename(root, join(folder, 'away'));
    expect(await codeOf('avatars/1/ab12')).toBe('ORIGIN_ERROR');
  });

  test('cannot be opened where there is no folder', async () => {
    await expect(createFilesystemOrigin(join(folder, 'nowhere'))).rejects.toThrow('ENOENT');
    await expect(createFilesystemOrigin(join(root, 'avatars/1/ab12'))).rejects.toThrow(
      'is not a folder',
    );
  });
});
