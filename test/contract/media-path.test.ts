import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatPath,
  type MediaPath,
  type ParsedPath,
  parsePath,
} from '../../src/contract/media-path.ts';
import { originKeyOf } from '../../src/contract/origin-key.ts';
import type { ResourceName } from '../../src/contract/resources.ts';

const FIVE = ['png', 'jpg', 'jpeg', 'webp', 'gif'];

/** The table of contract §1 in its own words: a path without its extension, and what it must become. */
const rows: readonly {
  readonly resource: ResourceName;
  readonly stem: string;
  readonly extensions: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  readonly originKey: string;
}[] = [
  {
    resource: 'user avatar',
    stem: '/avatars/80351110224678912/0123abcd',
    extensions: FIVE,
    values: { user_id: '80351110224678912', avatar_hash: '0123abcd' },
    originKey: 'avatars/80351110224678912/0123abcd',
  },
  {
    resource: 'guild icon',
    stem: '/icons/41/ab',
    extensions: FIVE,
    values: { guild_id: '41', icon_hash: 'ab' },
    originKey: 'icons/41/ab',
  },
  {
    resource: 'guild banner',
    stem: '/banners/41/a_ab',
    extensions: FIVE,
    values: { guild_id: '41', banner_hash: 'a_ab' },
    originKey: 'banners/41/ab',
  },
  {
    resource: 'guild splash',
    stem: '/splashes/41/ab',
    extensions: FIVE,
    values: { guild_id: '41', splash_hash: 'ab' },
    originKey: 'splashes/41/ab',
  },
  {
    resource: 'guild embed splash',
    stem: '/embed-splashes/41/ab',
    extensions: ['png', 'jpg', 'jpeg', 'webp'],
    values: { guild_id: '41', embed_splash_hash: 'ab' },
    originKey: 'embed-splashes/41/ab',
  },
  {
    resource: 'custom emoji',
    stem: '/emojis/42',
    extensions: FIVE,
    values: { emoji_id: '42' },
    originKey: 'emojis/42',
  },
  {
    resource: 'sticker',
    stem: '/stickers/43',
    extensions: ['webp', 'gif'],
    values: { sticker_id: '43' },
    originKey: 'stickers/43',
  },
  {
    resource: 'member avatar',
    stem: '/guilds/41/users/44/avatars/a_ab',
    extensions: FIVE,
    values: { guild_id: '41', user_id: '44', avatar_hash: 'a_ab' },
    originKey: 'guilds/41/users/44/avatars/ab',
  },
  {
    resource: 'member banner',
    stem: '/guilds/41/users/44/banners/ab',
    extensions: FIVE,
    values: { guild_id: '41', user_id: '44', banner_hash: 'ab' },
    originKey: 'guilds/41/users/44/banners/ab',
  },
];

const cases = rows.flatMap(({ extensions, ...row }) =>
  extensions.map((extension) => ({ ...row, extension, path: `${row.stem}.${extension}` })),
);

/** Names of the placeholders at fault, in order; fails the test if the path is not refused. */
function faultsOf(rawPath: string): readonly string[] {
  const parsed = parsePath(rawPath);
  if (parsed.kind !== 'invalid') throw new Error(`${rawPath} is ${JSON.stringify(parsed)}`);
  return parsed.faults.map(({ path }) => path);
}

function valid(rawPath: string): MediaPath {
  const parsed = parsePath(rawPath);
  if (parsed.kind !== 'valid') throw new Error(`${rawPath} is ${JSON.stringify(parsed)}`);
  return parsed.path;
}

function filenameOf(segment: string): string | undefined {
  return valid(`/attachments/1/2/${segment}`).values.filename;
}

describe('the resources of contract §1', () => {
  it.each(cases)('reads $path', ({ path, resource, values, extension, originKey }) => {
    const parsed = parsePath(path);
    expect(parsed).toEqual({ kind: 'valid', path: { resource, values, extension } });
    expect(originKeyOf(valid(path))).toBe(originKey);
  });

  it('reads an attachment, whose file name is free', () => {
    const path = valid('/attachments/51/52/no-extension');
    expect(path).toEqual({
      resource: 'attachment',
      values: { channel_id: '51', attachment_id: '52', filename: 'no-extension' },
      extension: undefined,
    });
    expect(originKeyOf(path)).toBe('attachments/51/52/no-extension');
  });

  it.each(['0', '1', '2', '3', '4', '5'])('reads default avatar %s', (index) => {
    const path = valid(`/avatars/${index}.png`);
    expect(path).toEqual({ resource: 'default avatar', values: { index }, extension: 'png' });
    expect(originKeyOf(path)).toBeUndefined();
  });

  it.each(rows)('refuses extensions that a $resource does not list', ({ stem, extensions }) => {
    const unlisted = [...FIVE, 'PNG', 'Gif', 'avif', 'svg', 'bmp', 'png ', 'pn', 'constructor', '']
      .filter((extension) => !extensions.includes(extension))
      .map((extension) => `${stem}.${encodeURIComponent(extension)}`);
    for (const path of unlisted) expect(faultsOf(path)).toEqual(['ext']);
  });

  it.each(['jpg', 'webp', 'gif', 'PNG', ''])('refuses a default avatar as .%s', (extension) => {
    expect(faultsOf(`/avatars/3.${extension}`)).toEqual(['ext']);
  });
});

describe('what is no template', () => {
  it.each([
    '',
    '/',
    '//',
    '*',
    'avatars/1/ab.png',
    '/avatars',
    '/avatars/',
    '/avatars/1/ab.png/',
    '//avatars/1/ab.png',
    '/avatars//1/ab.png',
    '/Avatars/1/ab.png',
    '/avatars/1/2/ab.png',
    '/avatar/1/ab.png',
    '/favicon.ico',
    '/robots.txt',
    '/emojis/1/ab.png',
    '/guilds/1/ab.png',
    '/guilds/1/users/2/ab.png',
    '/guilds/1/users/2/icons/ab.png',
    '/guilds/1/members/2/avatars/ab.png',
    '/attachments/1/2',
    '/attachments/1/2/3/name.png',
    '/attachments/1/2/name.png/',
    '/attachments/1/2/../name.png',
    '/./avatars/1/ab.png',
    '/icons/../avatars/1/ab.png',
    '/%ff/1/ab.png',
    '/avatars\\1\\ab.png',
    '/__proto__/1/ab.png',
  ])('%s', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'no template' });
  });

  it.each([
    '/avatars/1/ab',
    '/avatars/3',
    '/emojis/1',
    '/stickers/1',
    '/guilds/1/users/2/avatars/ab',
  ])('%s, without extension', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'no template' });
  });

  it.each([
    '/avatars/avatars/3.png',
    '/avatars/users/ab.png',
    '/icons/icons/ab.png',
    '/attachments/attachments/1/name.png',
  ])('%s, whose id is a word of the templates', (path) => {
    expect(parsePath(path)).toEqual({ kind: 'no template' });
  });
});

describe('ids', () => {
  it.each(['0', '1', '9007199254740993', '18446744073709551615'])('accepts %s', (id) => {
    expect(valid(`/emojis/${id}.png`).values.emoji_id).toBe(id);
    expect(originKeyOf(valid(`/emojis/${id}.png`))).toBe(`emojis/${id}`);
  });

  it.each([
    '',
    '18446744073709551616', // 2^64
    '99999999999999999999',
    '100000000000000000000',
    '9'.repeat(100),
    '01',
    '00',
    '-1',
    '-0',
    '+1',
    '0x1',
    'ff',
    '1e3',
    '1_000',
    '1n',
    '1.0',
    ' 1',
    '1 ',
    '1\n',
    '1\0',
    '1/2',
    '..',
    '１', // full-width digit
    '٣', // Arabic-Indic digit
    '@me',
    'me',
  ])('refuses %j', (id) => {
    expect(faultsOf(`/avatars/${encodeURIComponent(id)}/ab.png`)).toEqual(['user_id']);
    expect(faultsOf(`/attachments/1/${encodeURIComponent(id)}/name`)).toEqual(['attachment_id']);
    expect(faultsOf(`/emojis/${encodeURIComponent(id)}.png`)).toEqual(['emoji_id']);
  });

  it('refuses an index that is no integer, and leaves one out of range to the avatars', () => {
    for (const index of ['', '-1', '03', '3.0', 'three', '1%2f2', '18446744073709551616']) {
      expect(faultsOf(`/avatars/${index}.png`)).toEqual(['index']);
    }
    expect(valid('/avatars/6.png').values).toEqual({ index: '6' });
  });
});

describe('hashes', () => {
  it.each([
    'a',
    '-',
    '_',
    'A_b',
    'aZ09_-',
    'a_a',
    'a_a_b',
    'a'.repeat(128),
    `a_${'b'.repeat(126)}`,
  ])('accepts %s', (hash) => {
    expect(valid(`/icons/1/${hash}.png`).values.icon_hash).toBe(hash);
  });

  it.each([
    '',
    'a_',
    'a'.repeat(129),
    `a_${'b'.repeat(127)}`,
    'a.b',
    'a b',
    'a+b',
    'a~b',
    'a%b',
    'a/b',
    'a\\b',
    '..',
    'a\n',
    'a\0',
    'é',
    'ａ',
    '😀',
  ])('refuses %j', (hash) => {
    expect(faultsOf(`/icons/1/${encodeURIComponent(hash)}.png`)).toEqual(['icon_hash']);
  });

  it('takes the animation mark off the stored key, once and only at the start', () => {
    const keyOf = (hash: string) => originKeyOf(valid(`/icons/1/${hash}.gif`));
    expect(keyOf('a_b')).toBe('icons/1/b');
    expect(keyOf('a_a_b')).toBe('icons/1/a_b');
    expect(keyOf('A_b')).toBe('icons/1/A_b');
    expect(keyOf('ba_b')).toBe('icons/1/ba_b');
    expect(keyOf('a-b')).toBe('icons/1/a-b');
  });
});

describe('file names', () => {
  it.each([
    ['name.png', 'name.png'],
    ['%6eame%2Epng', 'name.png'],
    ['caf%C3%A9', 'café'],
    ['caf%c3%a9', 'café'],
    ['%E2%80%AEgpj.exe', '\u202egpj.exe'],
    ['%EF%BB%BFbom', '\ufeffbom'],
    ['%F0%9F%8E%89%20party.png', '🎉 party.png'],
    ['a%20b+c', 'a b+c'],
    ['what%3Fwidth=1', 'what?width=1'],
    ['%23hash%26&=;:@!$,()*', '#hash&&=;:@!$,()*'],
    ['100%25', '100%'],
    ['%252e%252e', '%2e%2e'], // decoded once, and no more
    ['%252e%252e%252fetc', '%2e%2e%2fetc'],
    ['%2500', '%00'],
    ['...', '...'],
    ['..%20', '.. '],
    ['.htaccess', '.htaccess'],
    ['__proto__', '__proto__'],
    ['avatars', 'avatars'],
    ['%7B', '{'],
    ['{filename}.{ext}', '{filename}.{ext}'],
    ['$&$1$`', '$&$1$`'],
  ])('reads %s', (segment, filename) => {
    expect(filenameOf(segment)).toBe(filename);
    expect(originKeyOf(valid(`/attachments/1/2/${segment}`))).toBe(`attachments/1/2/${filename}`);
  });

  it.each(['a', 'é', '€', '🎉'])('counts %s in bytes of UTF-8, up to 255', (character) => {
    const bytes = Buffer.byteLength(character);
    const longest = 'x'.repeat(255 % bytes) + character.repeat(Math.floor(255 / bytes));
    expect(filenameOf(encodeURIComponent(longest))).toBe(longest);
    expect(faultsOf(`/attachments/1/2/${encodeURIComponent(`${longest}x`)}`)).toEqual(['filename']);
  });

  it.each([
    ['', 'empty'],
    ['.', 'the folder itself'],
    ['..', 'the folder above'],
    ['%2e', 'the folder itself, escaped'],
    ['%2e%2E', 'the folder above, escaped'],
    ['.%2e', 'the folder above, half escaped'],
    ['%2f', 'a slash'],
    ['..%2f..%2fetc%2fpasswd', 'a way out'],
    ['a%5cb', 'a backslash'],
    ['a\\b', 'a raw backslash'],
    ['%00', 'NUL'],
    ['name.png%00.txt', 'NUL inside'],
    ['%0d%0aSet-Cookie:a=b', 'a line break'],
    ['%1b[31m', 'ESC'],
    ['%7f', 'DEL'],
    ['%c2%80', 'the first C1 control'],
    ['%c2%9f', 'the last C1 control'],
    ['\u00c2\u0085', 'a raw C1 control'],
    ['%', 'a bare percent sign'],
    ['%2', 'a cut escape'],
    ['%zz', 'no hexadecimal'],
    ['%u00e9', 'the escape of JScript'],
    ['%ff', 'no UTF-8'],
    ['%c3', 'a cut character'],
    ['%80', 'a continuation alone'],
    ['%c0%af', 'an overlong slash'],
    ['%c0%ae%c0%ae', 'overlong dots'],
    ['%e0%80%af', 'an overlong slash in three'],
    ['%ed%a0%80', 'a high surrogate'],
    ['%ed%b0%80', 'a low surrogate'],
    ['%ed%a0%bd%ed%b8%80', 'a pair of surrogates (CESU-8)'],
    ['%f4%90%80%80', 'beyond U+10FFFF'],
    ['%f8%88%80%80%80', 'five bytes'],
  ])('refuses %j: %s', (segment) => {
    expect(faultsOf(`/attachments/1/2/${segment}`)).toEqual(['filename']);
  });

  it('does not take an escaped slash for a separator', () => {
    expect(parsePath('/attachments/1/2%2fname.png')).toEqual({ kind: 'no template' });
    expect(parsePath('/attachments%2f1/2/name.png')).toEqual({ kind: 'no template' });
    expect(faultsOf('/avatars/1%2fab.png')).toEqual(['index']);
    expect(faultsOf('/avatars/%2e%2e/ab.png')).toEqual(['user_id']);
  });
});

describe('faults', () => {
  it.each<[string, readonly string[]]>([
    ['/avatars/x/!.bmp', ['user_id', 'avatar_hash', 'ext']],
    ['/guilds/01/users/-1/avatars/a_.PNG', ['guild_id', 'user_id', 'avatar_hash', 'ext']],
    ['/guilds/01/users/-1/banners/.PNG', ['guild_id', 'user_id', 'banner_hash', 'ext']],
    ['/splashes/x/!.bmp', ['guild_id', 'splash_hash', 'ext']],
    ['/embed-splashes/x/!.gif', ['guild_id', 'embed_splash_hash', 'ext']],
    ['/stickers/x.png', ['sticker_id', 'ext']],
    ['/attachments/x/y/%2f', ['channel_id', 'attachment_id', 'filename']],
    ['/attachments/x/y/%ff', ['channel_id', 'attachment_id', 'filename']],
    ['/avatars/x.gif', ['index', 'ext']],
    ['/avatars/%ff/%ff', ['user_id', 'avatar_hash']],
  ])('of %s are told all at once, by the names of the template', (path, names) => {
    expect(faultsOf(path)).toEqual(names);
  });

  it('each come with a message', () => {
    const parsed = parsePath('/guilds/01/users/%/avatars/a_.PNG');
    if (parsed.kind !== 'invalid') throw new Error(parsed.kind);
    expect(parsed.faults).toHaveLength(4);
    for (const { message } of parsed.faults) expect(message).toMatch(/^Expected .+\.$/);
  });
});

const id = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const hash = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/).filter((text) => text !== 'a_');
const nastyUnit = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom('%', '?', '#', ' ', '&', '=', '+', '.', '%2e', '%2f', '$&', '{', '}', 'é', '🎉'),
);
const filename = fc.string({ unit: nastyUnit, minLength: 1, maxLength: 80 }).filter(
  (text) =>
    Buffer.byteLength(text) <= 255 &&
    text !== '.' &&
    text !== '..' &&
    !Array.from(text).some((character) => {
      const code = character.codePointAt(0) ?? 0;
      return character === '/' || character === '\\' || code < 32 || (code > 126 && code < 160);
    }),
);

const path: fc.Arbitrary<MediaPath> = fc.oneof(
  fc.constantFrom(...cases).chain(({ resource, values, extension }) =>
    fc
      .record(
        Object.fromEntries(
          Object.keys(values).map((name) => [name, name.endsWith('_hash') ? hash : id]),
        ),
      )
      .map(
        (drawn): MediaPath => ({
          resource,
          values: drawn,
          extension: extension as MediaPath['extension'],
        }),
      ),
  ),
  fc
    .record({ channel_id: id, attachment_id: id, filename })
    .map((values): MediaPath => ({ resource: 'attachment', values, extension: undefined })),
  fc
    .record({ index: id })
    .map((values): MediaPath => ({ resource: 'default avatar', values, extension: 'png' })),
);

/** The same URL, written in another way: every byte escaped, or as few as a URL allows. */
function escapeAll(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

function escapeLittle(text: string): string {
  return encodeURI(text).replace(/[?#]/g, (character) => escapeAll(character));
}

describe('parsePath and formatPath', () => {
  it('are each other’s inverse on all paths of the contract', () => {
    fc.assert(
      fc.property(path, (original) => {
        expect(parsePath(formatPath(original))).toEqual({ kind: 'valid', path: original });
      }),
      { numRuns: 1000 },
    );
  });

  it('read a file name the same, however it is escaped', () => {
    fc.assert(
      fc.property(filename, (name) => {
        expect(filenameOf(escapeAll(name))).toBe(name);
        expect(filenameOf(escapeAll(name).toUpperCase())).toBe(name);
        expect(filenameOf(escapeLittle(name))).toBe(name);
        expect(filenameOf(encodeURIComponent(name))).toBe(name);
      }),
      { numRuns: 1000 },
    );
  });

  it('write in visible ASCII only, without a query or fragment', () => {
    fc.assert(
      fc.property(path, (original) => {
        expect(formatPath(original)).toMatch(/^[!-~]+$/);
        expect(formatPath(original)).not.toMatch(/[?#\\]/);
      }),
    );
  });

  it('let no raw path out of its folder, whatever it is made of', () => {
    const piece = fc.constantFrom(
      ...['/', '/', '/', '.', '..', '%2e', '%2f', '%5c', '\\', '%00', '%', '%ff', '\u00c3\u00a9'],
      ...[
        'avatars',
        'attachments',
        'emojis',
        'guilds',
        'users',
        '1',
        '2',
        'a_',
        'x',
        '.png',
        '%25',
      ],
    );
    const raw = fc.oneof(
      fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`),
      fc.array(piece, { maxLength: 4 }).map((pieces) => `/attachments/1/2/${pieces.join('')}`),
      fc.array(piece, { maxLength: 4 }).map((pieces) => `/avatars/1/${pieces.join('')}.png`),
    );
    let accepted = 0;
    fc.assert(
      fc.property(raw, (text) => {
        const parsed: ParsedPath = parsePath(text);
        if (parsed.kind !== 'valid') return;
        accepted += 1;
        expect(parsePath(formatPath(parsed.path))).toEqual(parsed);
        for (const segment of originKeyOf(parsed.path)?.split('/') ?? []) {
          expect(segment).not.toMatch(/^\.{0,2}$|[\\\p{Cc}]/u);
        }
      }),
      { numRuns: 3000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});
