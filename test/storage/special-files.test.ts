import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openFolderStorage } from '../support/folder-storage.ts';
import { openStream } from '../support/open-stream.ts';
import { RecordedLog } from '../support/recorded-log.ts';
import { openSweptFolder, readText } from '../support/result-folder/result-folder.ts';
import { storedPath } from '../support/stored-path.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../support/temporary-folder.ts';
import { addressOf, resultOf } from './contracts/result-store.contract.ts';

const { signal } = new AbortController();
const address = addressOf();

let temporary: TemporaryFolder;
let outside: string;
beforeEach(async () => {
  temporary = await useTemporaryFolder();
  outside = temporary.path;
});

const exists = (at: string): Promise<boolean> =>
  lstat(at).then(
    () => true,
    () => false,
  );

/** What may be in the place of a file or a folder, and where it leads. */
const obstacles: Readonly<Record<string, (path: string) => unknown>> = {
  'a hard link': (path) => link(join(outside, 'root/avatars/1/ab12'), path),
  'a dotfile': (path) => writeFile(path, 'x'),
  'a folder': (path) => mkdir(path),
  'a link to a file outside': (path) => symlink(join(outside, 'elsewhere/1/secret'), path),
  'a link to a file inside': (path) => symlink(join(outside, 'root/avatars/1/ab12'), path),
  'a link to a folder outside': (path) => symlink(join(outside, 'elsewhere/1'), path),
  'a link to a folder inside': (path) => symlink(join(outside, 'root/avatars'), path),
  'a link to nothing': (path) => symlink('nowhere', path),
  'a link to itself': (path) => symlink(path, path),
  'a link to a device': (path) => symlink('/dev/zero', path),
  'a pipe without a writer': (path) => execFileSync('mkfifo', [path]),
  'a socket': async (path) => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
  },
};

describe('originals in a folder: what is served is what is listed, and special files are neither:', () => {
  beforeEach(async () => {
    await temporary.put('root/avatars/1/ab12', 'inside');
    await temporary.put('elsewhere/1/secret', 'secret');
  });

  test.each([
    ['a hard link', 'avatars/1/x', 'avatars/1/x', true],
    ['a dotfile', 'avatars/1/.x', 'avatars/1/.x', true],
    ['a link to a folder outside', 'avatars/2', 'avatars/2/secret', false],
    ['a link to a folder outside', 'icons', 'icons/secret', false],
    ['a link to a folder inside', 'banners', 'banners/1/ab12', false],
    ...Object.keys(obstacles)
      .slice(2)
      .map((what) => [what, 'avatars/1/x', 'avatars/1/x', false] as const),
  ] as const)('%s at %s', async (what, place, key, isServed) => {
    const root = join(outside, 'root');
    await obstacles[what]?.(join(root, place));
    const { origin, listing } = await openFolderStorage(root);
    const outcome = await openStream(origin, key, { signal }).then(
      ({ body }) => body.destroy() && 'read',
      (error: { readonly code?: string }) => error.code,
    );
    expect(outcome).toBe(isServed ? 'read' : 'UNKNOWN_MEDIA');
    const keys: string[] = [];
    await listing.list('', (original) => keys.push(original.key) > 0, signal);
    expect(keys.sort()).toEqual(['avatars/1/ab12', ...(isServed ? [key] : [])].sort());
  });
});

describe('the folder of renderings', () => {
  let folder: string;
  let path: string;
  let store: Awaited<ReturnType<typeof openSweptFolder>>;
  /** Has another store take the place of the present one, as a new process would. */
  const reopen = async (maxBytes = 10_000_000, log = new RecordedLog()): Promise<void> => {
    store?.close();
    store = await openSweptFolder({ folder, maxBytes, log });
  };
  beforeEach(async () => {
    folder = join(outside, 'store');
    path = join(folder, 'results', storedPath(address));
    await reopen();
  });

  test.each(Object.keys(obstacles).slice(2))('is not read through %s', async (what) => {
    await store.write(address, resultOf('a'));
    await mkdir(join(outside, 'root/avatars/1'), { recursive: true });
    await mkdir(join(outside, 'elsewhere/1'), { recursive: true });
    await rename(path, join(outside, 'root/avatars/1/ab12'));
    await link(join(outside, 'root/avatars/1/ab12'), join(outside, 'elsewhere/1/secret'));
    await obstacles[what]?.(path);
    expect(await readText(store, address)).toBeUndefined();
    await reopen();
    expect(await readText(store, address)).toBeUndefined();
  });

  test('has a link in the place of a file replaced, not followed', async () => {
    await temporary.put('victim', 'untouched');
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(outside, 'victim'), path);
    await store.write(address, resultOf('a'));
    expect(await readText(store, address)).toBe('a');
    expect((await lstat(path)).isFile()).toBe(true);
    expect(await readFile(join(outside, 'victim'), 'utf8')).toBe('untouched');
  });

  test.each([
    ['a link to another folder', (at: string) => symlink(outside, at)],
    ['a link to nothing', (at: string) => symlink(join(outside, 'nothing'), at)],
    ['a file', (at: string) => writeFile(at, 'x')],
  ])(
    'rejects a write, and stays as it is, with %s in the place of a folder',
    async (_name, put) => {
      await mkdir(join(folder, 'results/avatars'));
      await put(join(folder, 'results/avatars/1'));
      const before = await temporary.list();
      await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({
        message: `The rendering ${path} cannot be written.`,
      });
      expect(await temporary.list()).toEqual(before);
    },
  );

  test('rejects a write, and keeps the folder, with a folder in the place of a file', async () => {
    await mkdir(join(path, 'kept'), { recursive: true });
    const cause = { code: 'EISDIR' };
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({ cause });
    expect(await exists(join(path, 'kept'))).toBe(true);
    expect(await readdir(join(folder, 'incoming'))).toEqual([]);
  });

  test('has a removal follow no link, neither in its path nor below, and leave no empty folder', async () => {
    await temporary.put('elsewhere/1/canary', 'x');
    await symlink(join(outside, 'elsewhere'), join(folder, 'results/avatars'));
    await store.write(addressOf({ originKey: 'banners/2/ab' }), resultOf('a'));
    await symlink(join(outside, 'elsewhere'), join(folder, 'results/banners/1'));
    await expect(store.remove('avatars/1/')).rejects.toThrow(/cannot be removed/);
    await expect(store.remove('banners/1/')).rejects.toThrow(/cannot be removed/);
    expect([await store.remove('avatars'), await store.remove('banners/')]).toEqual([0, 1]);
    expect(await readdir(join(folder, 'results/banners'))).toEqual(['1']);
    expect(await exists(join(outside, 'elsewhere/1/canary'))).toBe(true);
  });

  test.each([1, 10_000_000])(
    'keeps foreign files untouched, at a bound of %i bytes',
    async (maxBytes) => {
      const results = ['results/README', 'results/avatars/1/ab12', 'results/avatars/1/a/0123'];
      const foreign = [...results, 'notes', 'incoming/foreign', 'owner/foreign'];
      for (const name of foreign) await temporary.put(`store/${name}`, 'x');
      const log = new RecordedLog();
      await reopen(maxBytes, log);
      expect(await store.remove('avatars/')).toBe(0);
      for (const name of foreign) expect(await readFile(join(folder, name), 'utf8')).toBe('x');
      expect(log.entries.map(({ details }) => details)).toMatchObject([{ files: 0, foreign: 3 }]);
    },
  );

  test('neither counts nor evicts renderings behind a link', async () => {
    await temporary.put(`originals/${storedPath(address)}`, 'x'.repeat(100));
    const kept = join(outside, 'originals', storedPath(address));
    await symlink(join(outside, 'originals/avatars'), join(folder, 'results/avatars'));
    await reopen(1);
    expect(store.usage()).toEqual({ heldBytes: 0, maxBytes: 1, evictions: 0 });
    await rm(join(folder, 'results/avatars'));
    await reopen();
    await store.write(address, resultOf('a'));
    await rm(join(folder, 'results/avatars'), { recursive: true });
    await symlink(join(outside, 'originals/avatars'), join(folder, 'results/avatars'));
    expect(await readText(store, address)).toBeUndefined();
    await reopen(1);
    expect(await exists(kept)).toBe(true);
  });

  test('loses no write to purges that remove its subfolders all the time', async () => {
    await reopen(1e9);
    let isWriting = true;
    const written = (async () => {
      for (let turn = 0; turn < 100; turn += 1) await store.write(address, resultOf(`${turn}`));
    })().finally(() => {
      isWriting = false;
    });
    let removed = 0;
    while (isWriting) removed += await store.remove('avatars/');
    await written;
    expect(removed).toBeGreaterThan(0);
    await rm(join(folder, 'incoming'), { recursive: true });
    await store.write(address, resultOf('a'));
    expect(await readText(store, address)).toBe('a');
  });

  test('is not created again once it is gone with its disk', async () => {
    await store.write(address, resultOf('a'));
    await rm(folder, { recursive: true });
    expect(await readText(store, address)).toBeUndefined();
    await expect(store.write(address, resultOf('a'))).rejects.toThrow(/cannot be written/);
    expect(await exists(folder)).toBe(false);
  });

  test('may be a link, but not a file', async () => {
    await store.write(address, resultOf('a'));
    await symlink(folder, join(outside, 'link'));
    folder = join(outside, 'link');
    await reopen();
    expect(await readText(store, address)).toBe('a');
    await temporary.put('file', 'x');
    folder = join(outside, 'file');
    await expect(reopen()).rejects.toMatchObject({ code: 'EEXIST' });
  });
});
