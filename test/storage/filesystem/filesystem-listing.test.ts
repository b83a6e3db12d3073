import { execFileSync } from 'node:child_process';
import { link, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OriginListing } from '../../../src/pipeline/ports.ts';
import { createFilesystemListing } from '../../../src/storage/filesystem/filesystem-listing.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';

const signal = new AbortController().signal;

describe('the listing of a folder', () => {
  let folder: string;
  let root: string;
  let listing: OriginListing;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-listing-'));
    root = join(folder, 'root');
    await mkdir(join(root, 'avatars/1'), { recursive: true });
    await writeFile(join(root, 'avatars/1/ab12'), 'inside');
    await mkdir(join(folder, 'outside/1'), { recursive: true });
    await writeFile(join(folder, 'outside/1/secret'), 'secret');
    listing = await createFilesystemListing(root);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const keysBelow = async (prefix: string): Promise<string[]> => {
    const keys: string[] = [];
    await listing.list(prefix, ({ key }) => keys.push(key) > 0, signal);
    return keys.sort();
  };

  test('shows what the origin serves, and nothing that it does not', async () => {
    await symlink(join(folder, 'outside/1/secret'), join(root, 'avatars/1/out'));
    await symlink(join(root, 'avatars/1/ab12'), join(root, 'avatars/1/in'));
    await symlink(join(folder, 'outside'), join(root, 'avatars/2'));
    await link(join(root, 'avatars/1/ab12'), join(root, 'avatars/1/hard'));
    await writeFile(join(root, 'avatars/1/.hidden'), 'dotfile');
    execFileSync('mkfifo', [join(root, 'avatars/1/pipe')]);
    // A name that is no UTF-8 cannot be asked for.
    const notUtf8 = Buffer.concat([Buffer.from(`${root}/avatars/1/`), Buffer.from([0xff, 0x41])]);
    await writeFile(notUtf8, 'unnameable');

    const keys = await keysBelow('avatars/');
    expect(keys).toEqual(['avatars/1/.hidden', 'avatars/1/ab12', 'avatars/1/hard']);
    const origin = await createFilesystemOrigin(root);
    const others = ['avatars/1/out', 'avatars/1/in', 'avatars/2/1/secret', 'avatars/1/pipe'];
    for (const key of keys) (await origin.read(key, { signal })).body.destroy();
    for (const key of others) {
      await expect(origin.read(key, { signal })).rejects.toMatchObject({ code: 'UNKNOWN_MEDIA' });
    }
  });

  test('does not go where the folder of a kind is a link', async () => {
    await symlink(join(folder, 'outside'), join(root, 'icons'));
    await symlink(join(root, 'avatars'), join(root, 'banners'));
    expect(await keysBelow('icons/')).toEqual([]);
    expect(await keysBelow('banners/')).toEqual([]);
    expect(await keysBelow('avatars/')).toHaveLength(1);
  });

  test('tells a folder that is gone from an empty one', async () => {
    await rename(root, join(folder, 'elsewhere'));
    await expect(keysBelow('avatars/')).rejects.toMatchObject({ code: 'ORIGIN_ERROR' });
  });
});
