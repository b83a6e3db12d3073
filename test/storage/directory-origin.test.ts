import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { openDirectoryStorage } from '../support/directory-storage.ts';
import { openStream, signal } from '../support/open-stream.ts';
import { openFilesBelow } from '../support/processes/worker-ids.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { atScale } from '../support/test-scale.ts';
import { list } from './contracts/origin-listing.contract.ts';

const CANARY = 'CANARY: not to be read';

/** Each file contains its own key. The names are as difficult as a file system allows. */
const KEYS = [
  'avatars/1/ab12',
  'avatars/1/AB12',
  'emojis/1',
  ...['a b.txt', '\u00e9', 'e\u0301', '\ufffd', '%2e%2e', '...', '.. ', '..\\..\\canary'],
  ...['\u202egpj.exe', '.htaccess', '-rf', '~', 'line\nbreak', 'file:', 'x'.repeat(255)],
  'é'.repeat(127),
].map((name) => (name.includes('/') ? name : `attachments/1/2/${name}`));

let directory: string;
let root: string;
let put: (name: string, bytes: string) => Promise<void>;
beforeEach(async () => {
  ({ path: directory, put } = await useTemporaryDirectory());
  root = join(directory, 'root');
  for (const key of KEYS) await put(join('root', key), key);
});

/** Returns a function that reads keys: bytes, or the code of a MediaError; throws other errors. */
async function openReader(path = root, marker?: string) {
  const { origin } = await openDirectoryStorage(path, marker);
  return async (key: string): Promise<string> => {
    try {
      return (await buffer((await openStream(origin, key)).body)).toString();
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return error.code;
    }
  };
}

describe('originals in a directory', () => {
  const part = fc.oneof(
    fc.constantFrom('..', '.', '', '...', '.. ', '%2e%2e', '..\\', '\0', 'a\0', '~', '-', '*', '?'),
    fc.constantFrom(
      ...['avatars', 'AVATARS', 'emojis', 'attachments', '1', '2', 'ab12', 'Ab12', 'ab12\0'],
      ...['icons', 'up', 'slash', 'proc', 'loop', 'inside', 'canary', 'root', 'root2', 'outside'],
      ...['etc', 'passwd', 'e\u0301', '\ud800', 'ﬁ', '\u202e', 'x'.repeat(256), 'x'.repeat(5000)],
    ),
    fc.string({ unit: 'binary', maxLength: 6 }),
  );
  const separator = fc.constantFrom('/', '/', '/', '/', '//', '\\', '/./', '/../');
  const key = fc.oneof(
    fc.constantFrom(...KEYS),
    fc
      .array(fc.tuple(part, separator), { maxLength: 8 })
      .map((parts) => parts.flat().slice(0, -1).join('')),
    fc
      .tuple(fc.constantFrom(...KEYS), fc.nat(60), fc.nat(4), part)
      .map(([text, at, length, piece]) => text.slice(0, at) + piece + text.slice(at + length)),
    fc
      .tuple(
        fc.constantFrom('icons', 'up', 'slash', 'proc', 'inside', 'loop', 'avatars/1/link'),
        fc.constantFrom('1/canary', 'canary', 'root/emojis/1', '1/ab12', 'etc/passwd', 'icons'),
      )
      .map((parts) => parts.join('/')),
    // Paths from inside the root to files outside, directly or with extra steps.
    fc
      .tuple(fc.constantFrom('', ...KEYS), fc.nat(12), fc.constantFrom('canary', 'root2/emojis/1'))
      .map(([inside, ups, target]) => `${inside}/${'../'.repeat(ups)}${target}`),
    fc.string({ unit: 'binary' }),
  );

  test('are listed and served only under their own key, without bytes from outside or of special files', async () => {
    // Files next to the root, above it, and in a directory whose name begins like it, through every possible link.
    for (const place of ['canary', 'outside/1/canary', 'root2/emojis/1', 'rootcanary'])
      await put(place, CANARY);
    const links = {
      'avatars/1/link': join(directory, 'canary'),
      'avatars/1/relative': '../../../canary',
      icons: join(directory, 'outside'),
      up: '..',
      slash: '/',
      proc: '/proc/self/root',
      loop: 'loop',
      inside: join(root, 'avatars'),
      'avatars/1/inside': join(root, 'emojis/1'),
      'avatars/1/nothing': 'nowhere',
      'avatars/1/device': '/dev/zero',
    };
    for (const [place, target] of Object.entries(links)) await symlink(target, join(root, place));
    execFileSync('mkfifo', [join(root, 'avatars/1/pipe')]);
    const socket = createServer().listen(join(root, 'avatars/1/socket'));
    onTestFinished(() => void socket.close());
    await once(socket, 'listening');
    const { listing } = await openDirectoryStorage(root);
    const listed = await list(listing, '');
    expect(listed.map(({ key }) => key).sort()).toEqual([...KEYS].sort());
    const read = await openReader();
    for (const own of KEYS) expect(await read(own)).toBe(own);
    const belowOriginals = ['avatars/1', 'avatars/1/pipe', 'avatars/1/socket', 'icons/1/canary'];
    for (const other of [...Object.keys(links), ...belowOriginals, 'inside/1/ab12'])
      expect([other, await read(other)]).toEqual([other, 'UNKNOWN_MEDIA']);
    const absolute = [
      join(directory, 'canary'),
      join(root, 'emojis/1'),
      '/../../../../../etc/passwd',
    ];
    const examples = ['../canary', '../root2/emojis/1', '../rootcanary'];
    const outcomes: string[] = [];
    await fc.assert(
      fc.asyncProperty(key, async (text) => {
        const outcome = await read(text);
        outcomes.push(outcome);
        if (KEYS.includes(text)) expect(outcome).toBe(text);
        else expect(['UNKNOWN_MEDIA', 'ORIGIN_ERROR']).toContain(outcome);
      }),
      {
        numRuns: atScale(500, 4_000),
        examples: [...examples, ...absolute].map((text): [string] => [text]),
      },
    );
    expect(outcomes.filter((outcome) => outcome === 'UNKNOWN_MEDIA').length).toBeGreaterThan(100);
    expect(outcomes.filter((outcome) => KEYS.includes(outcome)).length).toBeGreaterThan(20);
  });

  test('are served from the root of the file system and from a symbolic link to a directory', async () => {
    const read = await openReader('/');
    expect(await read(join(root, 'emojis/1').slice(1))).toBe('emojis/1');
    expect(await read('../etc/passwd')).toBe('UNKNOWN_MEDIA');
    await symlink(root, join(directory, 'link'));
    expect(await (await openReader(join(directory, 'link')))('emojis/1')).toBe('emojis/1');
  });

  test('are reported as missing if the marker file exists; without it, the storage fails', async () => {
    const read = await openReader(root, '.mounted');
    const { writer } = await openDirectoryStorage(root, '.mounted');
    const write = () =>
      writer.write('emojis/2', (async function* () {})(), { signal, isNew: false });
    expect(await read('avatars/1/nothing')).toBe('ORIGIN_ERROR');
    expect(await read('emojis/1')).toBe('emojis/1');
    await mkdir(join(root, '.mounted'));
    expect(await read('avatars/1/nothing')).toBe('ORIGIN_ERROR');
    // The disk is not mounted, so the file would be written to the disk below it.
    await expect(write()).rejects.toThrow('STORAGE_MARKER');
    await rm(join(root, '.mounted'), { recursive: true });
    await writeFile(join(root, '.mounted'), '');
    expect(await read('avatars/1/nothing')).toBe('UNKNOWN_MEDIA');
    await write();
  });

  test('are not listed if their name is not UTF-8, because no request can name them', async () => {
    const name = Buffer.concat([Buffer.from(`${root}/emojis/`), Buffer.from([0xff, 0x41])]);
    await writeFile(name, 'unnameable');
    const { listing } = await openDirectoryStorage(root);
    expect(await list(listing, 'emojis/')).toEqual([{ key: 'emojis/1', sizeBytes: 8 }]);
  });

  test('leave no file open, whether they are read or rejected', async () => {
    const { origin } = await openDirectoryStorage(root);
    await origin.open('emojis/1', { signal, isBuffered: true });
    for (const [key, range] of [
      ['emojis/1', { first: 100, last: 200 }],
      ['avatars/1', undefined],
      ['avatars/1/none', undefined],
    ] as const) {
      await expect(origin.open(key, { signal, range, isBuffered: true })).rejects.toThrow();
    }
    await expect.poll(() => openFilesBelow(root, process.pid)).toEqual([]);
  });

  test('fail with ORIGIN_ERROR after their directory was removed; a storage does not open without one', async () => {
    const { origin, listing } = await openDirectoryStorage(root);
    await rename(root, join(directory, 'elsewhere'));
    const failing = { code: 'ORIGIN_ERROR' };
    await expect(origin.open('emojis/1', { signal })).rejects.toMatchObject(failing);
    await expect(listing.list('avatars/', () => true, signal)).rejects.toMatchObject(failing);
    await expect(openDirectoryStorage(root)).rejects.toThrow('ENOENT');
    const file = join(directory, 'elsewhere/emojis/1');
    await expect(openDirectoryStorage(file)).rejects.toThrow('is not a directory');
  });
});
