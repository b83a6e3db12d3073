import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { link, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { MediaError } from '../../../src/contract/errors.ts';
import { createFilesystemListing } from '../../../src/storage/filesystem/filesystem-listing.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { StorageMarker } from '../../../src/storage/filesystem/storage-marker.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

const signal = new AbortController().signal;

let folder: string;
let root: string;
beforeEach(async () => {
  const temporary = await useTemporaryFolder();
  folder = temporary.path;
  root = join(folder, 'root');
  await temporary.put('root/avatars/1/ab12', 'inside');
  await temporary.put('outside/1/secret', 'secret');
});

/** `read`, or the code of the refusal. */
const read = async (key: string, from = root): Promise<unknown> => {
  const origin = await createFilesystemOrigin(from);
  return origin.read(key, { signal }).then(
    ({ body }) => body.destroy() && 'read',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  );
};

const list = async (prefix: string): Promise<string[]> => {
  const keys: string[] = [];
  const listing = await createFilesystemListing(root);
  await listing.list(prefix, ({ key }) => keys.push(key) > 0, signal);
  return keys.sort();
};

test('in a folder without its marker, nothing is known to be missing', async () => {
  const marker = new StorageMarker(root, '.mounted');
  const origin = await createFilesystemOrigin(root, marker);
  const codeOf = (key: string): Promise<unknown> =>
    origin.read(key, { signal }).then(
      ({ body }) => body.destroy() && 'read',
      (error: MediaError) => error.code,
    );
  expect(await codeOf('avatars/1/nothing')).toBe('ORIGIN_ERROR');
  expect(await codeOf('avatars/1/ab12')).toBe('read');
  expect(marker.isMissing).toBe(true);
  await mkdir(join(root, '.mounted'));
  expect(await marker.look()).toBe(false);
  await rm(join(root, '.mounted'), { recursive: true });
  await writeFile(join(root, '.mounted'), '');
  expect(await codeOf('avatars/1/nothing')).toBe('UNKNOWN_MEDIA');
  expect(marker.isMissing).toBe(false);
});

describe('originals in a folder', () => {
  const add: Readonly<Record<string, (path: string) => unknown>> = {
    'a hard link': (path) => link(join(root, 'avatars/1/ab12'), path),
    'a dotfile': (path) => writeFile(path, 'x'),
    'a link to a file outside': (path) => symlink(join(folder, 'outside/1/secret'), path),
    'a link to a file inside': (path) => symlink(join(root, 'avatars/1/ab12'), path),
    'a link to nothing': (path) => symlink('nowhere', path),
    'a link to a folder outside': (path) => symlink(join(folder, 'outside/1'), path),
    'a link to a folder inside': (path) => symlink(join(root, 'avatars'), path),
    'a folder': (path) => mkdir(path),
    'a pipe without a writer': (path) => execFileSync('mkfifo', [path]),
  };

  test.each([
    ['a hard link', 'avatars/1/hard', 'avatars/1/hard', true],
    ['a dotfile', 'avatars/1/.hidden', 'avatars/1/.hidden', true],
    ['a link to a file outside', 'avatars/1/x', 'avatars/1/x', false],
    ['a link to a file inside', 'avatars/1/x', 'avatars/1/x', false],
    ['a link to nothing', 'avatars/1/x', 'avatars/1/x', false],
    ['a link to a folder outside', 'avatars/2', 'avatars/2/secret', false],
    ['a link to a folder outside', 'icons', 'icons/secret', false],
    ['a link to a folder inside', 'banners', 'banners/1/ab12', false],
    ['a folder', 'avatars/1/x', 'avatars/1/x', false],
    ['a pipe without a writer', 'avatars/1/x', 'avatars/1/x', false],
  ])('are served and listed alike: %s at %s', async (what, place, key, isServed) => {
    await add[what]?.(join(root, place));
    expect(await read(key)).toBe(isServed ? 'read' : 'UNKNOWN_MEDIA');
    expect(await list(`${key.split('/')[0]}/`)).toEqual(
      ['avatars/1/ab12', key]
        .filter((each) => (each === key ? isServed : key.startsWith('av')))
        .sort(),
    );
  });

  test('are not listed by a name that is no UTF-8, which cannot be asked for', async () => {
    const name = Buffer.concat([Buffer.from(`${root}/avatars/1/`), Buffer.from([0xff, 0x41])]);
    await writeFile(name, 'unnameable');
    expect(await list('avatars/')).toEqual(['avatars/1/ab12']);
  });

  test.each(['../outside/1/secret', 'avatars/../../outside/1/secret'])(
    'are not led out of by the key %s, which no parser would have made',
    async (key) => {
      expect(await read(key)).toBe('UNKNOWN_MEDIA');
    },
  );

  test('are closed, read at once or not at all', async () => {
    const origin = await createFilesystemOrigin(root);
    const openFiles = () =>
      readdirSync('/proc/self/fd').filter((name) => {
        try {
          return readlinkSync(`/proc/self/fd/${name}`).startsWith(root);
        } catch {
          return false; // that of the folder itself
        }
      });
    await origin.readForMemory('avatars/1/ab12', { signal });
    for (const [key, range] of [
      ['avatars/1/ab12', { first: 100, last: 200 }],
      ['avatars/1', undefined],
      ['avatars/1/none', undefined],
    ] as const) {
      await expect(origin.readForMemory(key, { signal, range })).rejects.toThrow();
    }
    await expect.poll(openFiles).toEqual([]);
  });

  test('may be reached through a link to the folder itself', async () => {
    await symlink(root, join(folder, 'link'));
    expect(await read('avatars/1/ab12', join(folder, 'link'))).toBe('read');
  });

  test('of a folder that is gone are a failing storage, not missing', async () => {
    const [origin, listing] = [
      await createFilesystemOrigin(root),
      await createFilesystemListing(root),
    ];
    await rename(root, join(folder, 'elsewhere'));
    const failing = { code: 'ORIGIN_ERROR' };
    await expect(origin.read('avatars/1/ab12', { signal })).rejects.toMatchObject(failing);
    await expect(listing.list('avatars/', () => true, signal)).rejects.toMatchObject(failing);
  });

  test('cannot be opened where there is no folder', async () => {
    await expect(createFilesystemOrigin(join(folder, 'nowhere'))).rejects.toThrow('ENOENT');
    const file = join(root, 'avatars/1/ab12');
    await expect(createFilesystemOrigin(file)).rejects.toThrow('is not a folder');
  });
});
