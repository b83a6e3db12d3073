import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { RecordedLog } from '../support/recorded-log.ts';
import { openSweptStore } from '../support/result-directory/result-directory.ts';
import { storedPath } from '../support/stored-path.ts';
import { type TemporaryDirectory, useTemporaryDirectory } from '../support/temporary-directory.ts';
import { addressOf, readText, resultOf } from './contracts/result-store.contract.ts';

const address = addressOf();

let temporary: TemporaryDirectory;
let outside: string;
let directory: string;
let path: string;
let store: Awaited<ReturnType<typeof openSweptStore>>;
beforeEach(async () => {
  temporary = await useTemporaryDirectory();
  outside = temporary.path;
  directory = join(outside, 'store');
  path = join(directory, 'results', storedPath(address));
  store = await openSweptStore({ directory, maxBytes: 10_000_000 });
});

/** Replaces the store, like a new process. */
async function reopen(maxBytes = 10_000_000, log = new RecordedLog()): Promise<void> {
  store.close();
  store = await openSweptStore({ directory, maxBytes, log });
}

const obstacles: Readonly<Record<string, (path: string) => unknown>> = {
  'a directory': (path) => mkdir(path),
  'a link to the rendering': (path) => symlink(join(outside, 'moved'), path),
  'a link to a directory': (path) => symlink(outside, path),
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

describe('the directory of renderings', () => {
  test.each(Object.keys(obstacles))('is not read through %s', async (what) => {
    await store.write(address, resultOf('a'));
    await rename(path, join(outside, 'moved'));
    await obstacles[what]?.(path);
    expect(await readText(store, address)).toBeUndefined();
    await reopen();
    expect(await readText(store, address)).toBeUndefined();
  });

  test('replaces a symbolic link instead of following it', async () => {
    await temporary.put('victim', 'untouched');
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(outside, 'victim'), path);
    await store.write(address, resultOf('a'));
    expect(await readText(store, address)).toBe('a');
    expect((await lstat(path)).isFile()).toBe(true);
    expect(await readFile(join(outside, 'victim'), 'utf8')).toBe('untouched');
  });

  test.each<[what: string, put: (parent: string) => unknown]>([
    ['a link to another directory instead of a directory', (at) => symlink(outside, at)],
    ['a dangling link instead of a directory', (at) => symlink(join(outside, 'nothing'), at)],
    ['a file instead of a directory', (at) => writeFile(at, 'x')],
    [
      'a directory instead of a file',
      () => temporary.put(`store/results/${storedPath(address)}/kept`, 'x'),
    ],
  ])('rejects a write, and stays unchanged, with %s', async (_, put) => {
    await mkdir(join(directory, 'results/avatars'));
    await put(join(directory, 'results/avatars/1'));
    const before = await temporary.list();
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({
      message: `The rendering ${path} cannot be written.`,
    });
    expect(await temporary.list()).toEqual(before);
  });

  test('removes without following links in the path or below, and leaves no empty directory', async () => {
    await temporary.put('elsewhere/1/canary', 'x');
    await symlink(join(outside, 'elsewhere'), join(directory, 'results/avatars'));
    await store.write(addressOf({ originKey: 'banners/2/ab' }), resultOf('a'));
    await symlink(join(outside, 'elsewhere'), join(directory, 'results/banners/1'));
    await expect(store.remove('avatars/1/')).rejects.toThrow(/cannot be removed/);
    await expect(store.remove('banners/1/')).rejects.toThrow(/cannot be removed/);
    expect([await store.remove('avatars'), await store.remove('banners/')]).toEqual([0, 1]);
    expect(await readdir(join(directory, 'results/banners'))).toEqual(['1']);
    expect(existsSync(join(outside, 'elsewhere/1/canary'))).toBe(true);
  });

  test.each([1, 10_000_000])(
    'keeps foreign files unchanged, at a limit of %i bytes',
    async (maxBytes) => {
      const results = ['results/README', 'results/avatars/1/ab12', 'results/avatars/1/a/0123'];
      const foreign = [...results, 'notes', 'incoming/foreign', 'owner/foreign'];
      for (const name of foreign) await temporary.put(`store/${name}`, 'x');
      const log = new RecordedLog();
      await reopen(maxBytes, log);
      expect(await store.remove('avatars/')).toBe(0);
      for (const name of foreign) expect(await readFile(join(directory, name), 'utf8')).toBe('x');
      expect(log.entries.map(({ details }) => details)).toMatchObject([{ files: 0, foreign: 3 }]);
    },
  );

  test('neither counts nor evicts renderings behind a link', async () => {
    await temporary.put(`originals/${storedPath(address)}`, 'x'.repeat(100));
    const kept = join(outside, 'originals', storedPath(address));
    await symlink(join(outside, 'originals/avatars'), join(directory, 'results/avatars'));
    await reopen(1);
    expect(store.usage()).toEqual({ heldBytes: 0, maxBytes: 1, evictions: 0 });
    await rm(join(directory, 'results/avatars'));
    await reopen();
    await store.write(address, resultOf('a'));
    await rm(join(directory, 'results/avatars'), { recursive: true });
    await symlink(join(outside, 'originals/avatars'), join(directory, 'results/avatars'));
    expect(await readText(store, address)).toBeUndefined();
    await reopen(1);
    expect(existsSync(kept)).toBe(true);
  });

  test('loses no write to purges that constantly remove its subdirectories', async () => {
    await reopen(1e9);
    let isWriting = true;
    const written = (async () => {
      for (let round = 0; round < 100; round += 1) await store.write(address, resultOf(`${round}`));
    })().finally(() => {
      isWriting = false;
    });
    let removed = 0;
    while (isWriting) removed += await store.remove('avatars/');
    await written;
    expect(removed).toBeGreaterThan(0);
    await rm(join(directory, 'incoming'), { recursive: true });
    await store.write(address, resultOf('a'));
    expect(await readText(store, address)).toBe('a');
  });

  test('is not created again after its disk was unmounted', async () => {
    await store.write(address, resultOf('a'));
    await rm(directory, { recursive: true });
    expect(await readText(store, address)).toBeUndefined();
    await expect(store.write(address, resultOf('a'))).rejects.toThrow(/cannot be written/);
    expect(existsSync(directory)).toBe(false);
  });

  test('can be a link, but not a file', async () => {
    await store.write(address, resultOf('a'));
    await symlink(directory, join(outside, 'link'));
    directory = join(outside, 'link');
    await reopen();
    expect(await readText(store, address)).toBe('a');
    await temporary.put('file', 'x');
    directory = join(outside, 'file');
    await expect(reopen()).rejects.toMatchObject({ code: 'EEXIST' });
  });
});
