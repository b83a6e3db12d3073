import { link, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Origin } from '../../../src/pipeline/ports.ts';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

const signal = new AbortController().signal;
const CANARY = 'CANARY: not to be read';

/** Files inside, by key; each holds its own key. Names as hard as a file system takes them. */
const KEYS = [
  'avatars/1/ab12',
  'avatars/1/AB12',
  'emojis/1',
  'attachments/1/2/a b.txt',
  'attachments/1/2/\u00e9',
  'attachments/1/2/e\u0301',
  'attachments/1/2/\ufffd',
  'attachments/1/2/%2e%2e',
  'attachments/1/2/...',
  'attachments/1/2/.. ',
  'attachments/1/2/..\\..\\canary',
  'attachments/1/2/\u202egpj.exe',
  'attachments/1/2/.htaccess',
  'attachments/1/2/-rf',
  'attachments/1/2/~',
  'attachments/1/2/line\nbreak',
  'attachments/1/2/file:',
  `attachments/1/2/${'x'.repeat(255)}`,
  `attachments/1/2/${'é'.repeat(127)}`,
];

describe('the filesystem origin', () => {
  let folder: string;
  let root: string;
  let origin: Origin;

  beforeAll(async () => {
    const { path, put, remove } = await makeTemporaryFolder();
    folder = path;
    root = join(folder, 'root');
    for (const key of KEYS) await put(join('root', key), key);
    // Next to the root, above it, and under a name that begins like it.
    for (const place of ['canary', 'outside/1/canary', 'root2/avatars/1/ab12', 'rootcanary']) {
      await put(place, CANARY);
    }
    // And every way there that a link can be.
    const links: readonly (readonly [string, string])[] = [
      [join(folder, 'canary'), 'avatars/1/link'],
      ['../../../canary', 'avatars/1/relative'],
      [join(folder, 'outside'), 'icons'],
      ['..', 'up'],
      ['/', 'slash'],
      ['/proc/self/root', 'proc'],
      ['loop', 'loop'],
      [join(root, 'avatars'), 'inside'],
    ];
    for (const [target, place] of links) await symlink(target, join(root, place));
    origin = await createFilesystemOrigin(root);
    return remove;
  });

  /** What a key gets: bytes, or the code of a refusal; anything else is thrown. */
  const read = async (key: string): Promise<string> => {
    try {
      const { body } = await origin.read(key, { signal });
      return (await buffer(body)).toString();
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return error.code;
    }
  };

  test.each(KEYS)('serves %j under its own key', async (key) => {
    expect(await read(key)).toBe(key);
  });

  const part = fc.oneof(
    fc.constantFrom('..', '.', '', '...', '.. ', '%2e%2e', '..\\', '\0', 'a\0', '~', '-', '*', '?'),
    fc.constantFrom(
      ...['avatars', 'AVATARS', 'emojis', 'attachments', '1', '2', 'ab12', 'Ab12', 'ab12\0'],
      ...['link', 'relative', 'icons', 'up', 'slash', 'proc', 'loop', 'inside', 'canary'],
      ...['root', 'root2', 'outside', 'tmp', 'etc', 'passwd', 'e\u0301', '\u00e9', '\ud800'],
      ...['ﬁ', '\u202e', 'x'.repeat(255), 'x'.repeat(256), 'x'.repeat(5000), 'con', 'nul'],
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
    // Through a link, to what is there behind it.
    fc
      .tuple(
        fc.constantFrom('icons', 'up', 'slash', 'proc', 'inside', 'loop', 'avatars/1/link'),
        fc.constantFrom('1/canary', 'canary', 'root/emojis/1', '1/ab12', 'etc/passwd', 'icons'),
      )
      .map((parts) => parts.join('/')),
    // From the inside out, straight and round about.
    fc
      .tuple(
        fc.constantFrom('', ...KEYS),
        fc.nat(12),
        fc.constantFrom('canary', 'root2/avatars/1/ab12'),
      )
      .map(([inside, ups, target]) => `${inside}/${'../'.repeat(ups)}${target}`),
    fc.constantFrom('canary', 'outside/1/canary', 'emojis/1').map((name) => join('/', name)),
    fc.string({ unit: 'binary' }),
  );

  test('serves no byte from outside, and nothing under another key than its own', async () => {
    const examples = ['../canary', '../root2/avatars/1/ab12', '../rootcanary', 'avatars/1/link'];
    const absolute = [
      join(folder, 'canary'),
      join(root, 'emojis/1'),
      `/${'../'.repeat(9)}etc/passwd`,
    ];
    const seen: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(key, async (text) => {
        const outcome = await read(text);
        const kind = KEYS.includes(text) ? 'served' : outcome;
        seen[kind] = (seen[kind] ?? 0) + 1;
        if (KEYS.includes(text)) expect(outcome).toBe(text);
        else expect(['UNKNOWN_MEDIA', 'ORIGIN_ERROR']).toContain(outcome);
      }),
      { numRuns: 4_000, examples: [...examples, ...absolute].map((text): [string] => [text]) },
    );
    expect(seen.served).toBeGreaterThan(100);
    expect(seen.UNKNOWN_MEDIA).toBeGreaterThan(1_000);
  });

  test('does not tell a hard link from a file, as its description says', async () => {
    await link(join(folder, 'canary'), join(root, 'emojis/2'));
    expect(await read('emojis/2')).toBe(CANARY);
    await rm(join(root, 'emojis/2'));
  });

  test('may be the whole file system', async () => {
    origin = await createFilesystemOrigin('/');
    expect(await read(join(root, 'emojis/1').slice(1))).toBe('emojis/1');
    expect(await read('../etc/passwd')).toBe('UNKNOWN_MEDIA');
    origin = await createFilesystemOrigin(root);
  });
});
