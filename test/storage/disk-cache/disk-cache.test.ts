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
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import { createDiskCache, type DiskCache } from '../../../src/storage/disk-cache/disk-cache.ts';
import { openScannedCache, untilScanned } from '../../support/disk-cache/disk-cache.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, anySize, resultOf } from '../contracts/result-store.contract.ts';

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();
const address = addressOf();

let temporary: TemporaryFolder;
let outside: string;
let folder: string;
let path: string;
let store: DiskCache;

/** Has another store take the place of the present one, as a new process would. */
async function reopen(maxBytes = 10_000_000, log = new RecordedLog()): Promise<void> {
  store.close();
  store = await openScannedCache({ folder, maxBytes, log });
}

beforeEach(async () => {
  temporary = await useTemporaryFolder();
  outside = temporary.path;
  folder = join(outside, 'store');
  path = join(folder, 'results', resultPath(address));
  store = await openScannedCache({ folder, maxBytes: 10_000_000 });
});
afterEach(() => store.close());

const readText = async (from = address): Promise<string | undefined> => {
  const result = await store.read(from, signal, anySize);
  return result && Buffer.from(result.body).toString();
};
const exists = (at: string): Promise<boolean> =>
  lstat(at).then(
    () => true,
    () => false,
  );

describe('a file of the store', () => {
  test('is below results, by its path, and leaves nothing in incoming', async () => {
    await store.write(address, resultOf('a'));
    expect((await readFile(path, 'latin1')).slice(0, 4)).toBe('DKR1');
    expect(await readdir(join(folder, 'incoming'))).toEqual([]);
  });

  test('is nothing at every shorter length, and is removed', async () => {
    await store.write(address, resultOf('the body of a rendering'));
    const { size } = await stat(path);
    expect(await readText()).toBe('the body of a rendering');
    for (let length = size - 1; length >= 0; length -= 1) {
      await store.write(address, resultOf('the body of a rendering'));
      await truncate(path, length);
      expect(await readText(), `${length} bytes`).toBeUndefined();
      expect(await exists(path)).toBe(false);
    }
    expect(store.usage()?.heldBytes).toBe(0);
    await store.write(address, resultOf('again'));
    expect(await readText()).toBe('again');
  });

  test('is kept from one process to the next', async () => {
    await store.write(address, resultOf('a'));
    const usage = store.usage();
    await reopen();
    expect(await readText()).toBe('a');
    expect(store.usage()).toEqual(usage);
  });

  test('is read, and removed, while the scan is under way; nothing is written then', async () => {
    const other = addressOf({ originKey: 'avatars/2/cd34' });
    await store.write(address, resultOf('a'));
    await store.write(other, resultOf('b'));
    store.close();
    store = await createDiskCache({ folder, maxBytes: 10_000_000, log: new RecordedLog() });
    expect(store.usage()).toBeUndefined();
    await store.write(addressOf({ release: 'r2' }), resultOf('c'));
    const [one, removed] = await Promise.all([readText(), store.remove('avatars/2/')]);
    expect([one, removed]).toEqual(['a', 1]);
    await untilScanned(store);
    expect(await readText(addressOf({ release: 'r2' }))).toBeUndefined();
    expect(await readText(other)).toBeUndefined();
  });

  test('is nothing under the name of another', async () => {
    const other = addressOf({ originKey: 'avatars/2/cd34' });
    await store.write(address, resultOf('a'));
    const otherPath = join(folder, 'results', resultPath(other));
    await mkdir(dirname(otherPath), { recursive: true });
    await link(path, otherPath);
    await reopen();
    expect(await readText(other)).toBeUndefined();
    expect(await exists(otherPath)).toBe(false);
    await store.write(other, resultOf('b'));
    expect(await readText(other)).toBe('b');
    expect(await readText()).toBe('a');
  });

  test('is nothing when it is larger than any that is written', async () => {
    await reopen(20_000_000);
    await store.write(address, resultOf('x'.repeat(700_000)));
    expect(await readText()).toBeDefined();
    await reopen();
    expect(await readText()).toBeUndefined();
  });

  test('is not kept when it is larger than a twentieth of the bound', async () => {
    await store.write(address, resultOf('x'.repeat(500_000)));
    expect(await readdir(join(folder, 'results'))).toEqual([]);
    await store.write(address, resultOf('x'.repeat(499_000)));
    expect(await readText()).toHaveLength(499_000);
  });

  test('has the time of its last use, to an hour', async () => {
    await store.write(address, resultOf('a'));
    const ages = async (ageMs: number): Promise<number> => {
      const at = new Date(Date.now() - ageMs);
      await utimes(path, at, at);
      expect(await readText()).toBe('a');
      return Math.round((Date.now() - (await stat(path)).mtimeMs) / 60_000);
    };
    expect(await ages(HOUR_MS - 120_000)).toBe(58);
    expect(await ages(HOUR_MS + 120_000)).toBe(0);
  });
});

describe('what is in the way of a read', () => {
  const listen = async (): Promise<void> => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
  };

  test.each([
    ['a folder', () => mkdir(path)],
    ['a link to a rendering', () => symlink(join(outside, 'rendering'), path)],
    ['a link to itself', () => symlink(path, path)],
    ['a link to nothing', () => symlink(join(outside, 'nothing'), path)],
    ['a device', () => symlink('/dev/zero', path)],
    ['a pipe without a writer', async () => execFileSync('mkfifo', [path])],
    ['a socket', listen],
  ])('%s is no rendering', async (_name, obstruct) => {
    await store.write(address, resultOf('a'));
    await rename(path, join(outside, 'rendering'));
    await obstruct();
    expect(await readText()).toBeUndefined();
    await reopen();
    expect(await readText()).toBeUndefined();
  });

  test('a file in the place of a folder is no rendering', async () => {
    await store.write(address, resultOf('a'));
    await rm(dirname(path), { recursive: true });
    await writeFile(dirname(path), 'x');
    expect(await readText()).toBeUndefined();
  });
});

describe('what is in the way of a write', () => {
  test('a link in the place of the file is replaced, not followed', async () => {
    const victim = join(outside, 'victim');
    await writeFile(victim, 'untouched');
    await mkdir(dirname(path), { recursive: true });
    await symlink(victim, path);
    await store.write(address, resultOf('a'));
    expect(await readText()).toBe('a');
    expect((await lstat(path)).isFile()).toBe(true);
    expect(await readFile(victim, 'utf8')).toBe('untouched');
  });

  test.each([
    ['a link to another folder', (at: string) => symlink(outside, at)],
    ['a link to nothing', (at: string) => symlink(join(outside, 'nothing'), at)],
    ['a file', (at: string) => writeFile(at, 'x')],
  ])('%s in the place of a folder is an error, and nothing is written', async (_name, put) => {
    await mkdir(join(folder, 'results/avatars'));
    await put(join(folder, 'results/avatars/1'));
    // Links are not followed where types are asked for; one of these leads back to where it is.
    const listOutside = () => readdir(outside, { recursive: true, withFileTypes: true });
    const before = await listOutside();
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({
      message: `The rendering ${path} cannot be written.`,
      cause: expect.any(Error),
    });
    expect(await listOutside()).toEqual(before);
  });

  test('a folder in the place of the file is an error, and the folder stays', async () => {
    await mkdir(join(path, 'kept'), { recursive: true });
    await expect(store.write(address, resultOf('a'))).rejects.toMatchObject({
      cause: { code: 'EISDIR' },
    });
    expect(await exists(join(path, 'kept'))).toBe(true);
    expect(await readdir(join(folder, 'incoming'))).toEqual([]);
  });

  test('folders that are removed all the time cost no write', async () => {
    const written = (async () => {
      for (let turn = 0; turn < 100; turn += 1) await store.write(address, resultOf(`${turn}`));
      return true;
    })();
    let isWriting = true;
    const end = (): void => {
      isWriting = false;
    };
    written.then(end, end);
    let removed = 0;
    while (isWriting) removed += await store.remove('avatars/');
    expect(await written).toBe(true);
    expect(removed).toBeGreaterThan(0);
  });

  test('an incoming folder that was removed is made again', async () => {
    await rm(join(folder, 'incoming'), { recursive: true });
    await store.write(address, resultOf('a'));
    expect(await readText()).toBe('a');
  });

  test('the folder of an unmounted disk is not made again', async () => {
    await store.write(address, resultOf('a'));
    await rm(folder, { recursive: true });
    expect(await readText()).toBeUndefined();
    await expect(store.write(address, resultOf('a'))).rejects.toThrow(/cannot be written/);
    expect(await exists(folder)).toBe(false);
  });
});

describe('a removal', () => {
  test('leaves no empty folder, and none that is not', async () => {
    await store.write(addressOf({ originKey: 'avatars/1/ab' }), resultOf('a'));
    await store.write(addressOf({ originKey: 'avatars/12/ab' }), resultOf('b'));
    expect(await store.remove('avatars/1/')).toBe(1);
    expect(await readdir(join(folder, 'results/avatars'))).toEqual(['12']);
    expect(await store.remove('avatars/1')).toBe(1);
    expect(await readdir(join(folder, 'results'))).toEqual([]);
  });

  test('follows no link, neither on its way nor below', async () => {
    const canary = join(outside, 'elsewhere/1/canary');
    await mkdir(dirname(canary), { recursive: true });
    await writeFile(canary, 'x');
    await symlink(join(outside, 'elsewhere'), join(folder, 'results/avatars'));
    await mkdir(join(folder, 'results/banners'));
    await symlink(join(outside, 'elsewhere'), join(folder, 'results/banners/1'));
    await expect(store.remove('avatars/1/')).rejects.toThrow(/cannot be removed/);
    expect(await store.remove('avatars')).toBe(0);
    await expect(store.remove('banners/1/')).rejects.toThrow(/cannot be removed/);
    expect(await store.remove('banners/')).toBe(0);
    expect(await readFile(canary, 'utf8')).toBe('x');
  });

  test('takes what begins with dots by a part of its name', async () => {
    const dotted = addressOf({ originKey: 'attachments/1/2/.htaccess' });
    await store.write(dotted, resultOf('a'));
    expect(await store.remove('attachments/1/2/.')).toBe(1);
  });
});

describe('what is no rendering', () => {
  const foreign = ['results/README', 'results/avatars/1/ab12', 'results/avatars/1/a/0123', 'notes'];

  test.each([1, 10_000_000])('is never touched, at a bound of %i bytes', async (maxBytes) => {
    for (const name of foreign) await temporary.put(`store/${name}`, 'x');
    await writeFile(join(folder, 'incoming/foreign'), 'x');
    await writeFile(join(folder, 'owner/foreign'), 'x');
    const log = new RecordedLog();
    await reopen(maxBytes, log);
    expect(await store.remove('avatars/')).toBe(0);
    for (const name of [...foreign, 'incoming/foreign', 'owner/foreign']) {
      expect(await readFile(join(folder, name), 'utf8')).toBe('x');
    }
    const warning = 'files in the result store are no renderings; they are left alone';
    expect(log.entries.find(({ message }) => message === warning)?.details).toEqual({ files: 3 });
  });

  test('is not followed where it is a link: neither by a scan nor by an eviction', async () => {
    const names = [resultPath(address), resultPath(addressOf({ release: 'r2' }))];
    for (const name of names) await temporary.put(`originals/${name}`, 'x'.repeat(100));
    await symlink(join(outside, 'originals/avatars'), join(folder, 'results/avatars'));
    await reopen(1);
    expect(store.usage()).toEqual({ heldBytes: 0, maxBytes: 1, evictions: 0 });
    for (const name of names) expect(await exists(join(outside, 'originals', name))).toBe(true);
  });

  test('is not followed where a folder becomes a link behind its back', async () => {
    await store.write(address, resultOf('a'));
    await rename(join(folder, 'results/avatars'), join(outside, 'originals'));
    await symlink(join(outside, 'originals'), join(folder, 'results/avatars'));
    expect(await readText()).toBeUndefined();
    const large = resultOf('x'.repeat(499_000));
    const writeUntilFull = async (): Promise<void> => {
      for (let at = 0; at < 30; at += 1) {
        await store.write(addressOf({ originKey: `banners/${at}/ab` }), large);
      }
    };
    await expect(writeUntilFull()).rejects.toThrow(/is behind a link/);
    expect(await readdir(join(outside, 'originals/1/ab12'))).toHaveLength(1);
  });
});

describe('a store whose folder', () => {
  test('is a file cannot be opened', async () => {
    await writeFile(join(outside, 'file'), 'x');
    const options = { folder: join(outside, 'file'), maxBytes: 1, log: new RecordedLog() };
    await expect(createDiskCache(options)).rejects.toMatchObject({ code: 'EEXIST' });
  });

  test('is a link is the folder behind it', async () => {
    await symlink(folder, join(outside, 'link'));
    await store.write(address, resultOf('a'));
    folder = join(outside, 'link');
    await reopen();
    expect(await readText()).toBe('a');
    await store.write(address, resultOf('b'));
    expect(await readText()).toBe('b');
  });
});
