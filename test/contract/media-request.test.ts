import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import {
  isKnownPath,
  type MediaRequest,
  parseTarget,
  resultKey,
} from '../../src/contract/media-request.ts';
import { resourceRows } from '../../src/contract/resources.ts';
import { rows } from '../surface/contract-oracle.ts';

function requestOf(target: string): MediaRequest {
  const parsed = parseTarget(target);
  if (parsed.kind !== 'media') throw new Error(`${target} is a ${parsed.kind}`);
  return parsed.request;
}

function keyOf(target: string): string {
  return resultKey(requestOf(target));
}

function errorOf(target: string): MediaError {
  try {
    parseTarget(target);
  } catch (error) {
    if (error instanceof MediaError) return error;
    throw error;
  }
  throw new Error(`${target} was accepted`);
}

const avatar = '/avatars/1/ab';
const sticker = '/stickers/1';
const file = '/attachments/1/2/name.png';

describe('two URLs with the same bytes', () => {
  it.each<[string, readonly string[]]>([
    [
      'order of parameters',
      [
        `${avatar}.webp?size=64&quality=low&animated=true`,
        `${avatar}.webp?animated=true&size=64&quality=low`,
        `${avatar}.webp?quality=low&animated=true&size=64`,
      ],
    ],
    [
      'defaults of an asset, spelled out',
      [
        `${avatar}.webp`,
        `${avatar}.webp?`,
        `${avatar}.webp?size=128`,
        `${avatar}.webp?quality=high&animated=false`,
        `${avatar}.webp?animated=false&quality=high&size=128`,
      ],
    ],
    [
      'defaults of a sticker, spelled out',
      [`${sticker}.webp`, `${sticker}.webp?quality=lossless`, `${sticker}.webp?animated=true`],
    ],
    [
      'defaults of an attachment, spelled out',
      [
        `${file}?width=100`,
        `${file}?width=100&quality=lossless`,
        `${file}?width=100&animated=false&quality=lossless`,
      ],
    ],
    ['jpg and jpeg', [`${avatar}.jpg`, `${avatar}.jpeg`]],
    ['jpg and jpeg of an attachment', [`${file}?format=jpg`, `${file}?format=jpeg`]],
    [
      'parameters that nobody knows',
      [
        `${avatar}.png`,
        `${avatar}.png?v=1`,
        `${avatar}.png?width=1&height=0&format=exe`,
        `${avatar}.png?__proto__=1&Size=16&size[]=16`,
        `${avatar}.png??size=16`,
      ],
    ],
    ['size of an attachment', [`${file}?width=16`, `${file}?width=16&size=64&size=x`]],
    ['the mark of an animated original', [`${avatar}.gif`, '/avatars/1/a_ab.gif']],
    [
      'animated on a png',
      [`${avatar}.png`, `${avatar}.png?animated=true`, `${avatar}.png?animated=false`],
    ],
    ['animated on a jpeg', [`${avatar}.jpeg`, `${avatar}.jpg?animated=true`]],
    ['animated on a gif, which always is', [`${avatar}.gif`, `${avatar}.gif?animated=true`]],
    ['not animated on a gif, which always is', [`${avatar}.gif`, `${avatar}.gif?animated=false`]],
    ['animated on a gif sticker', [`${sticker}.gif`, `${sticker}.gif?animated=false`]],
    [
      'high and lossless on a png',
      [`${avatar}.png`, `${avatar}.png?quality=high`, `${avatar}.png?quality=lossless`],
    ],
    [
      'high and lossless on a gif',
      [`${avatar}.gif?quality=high`, `${avatar}.gif?quality=lossless`],
    ],
    ['high and lossless on a gif sticker', [`${sticker}.gif`, `${sticker}.gif?quality=high`]],
    [
      'flags of an attachment as png',
      [
        `${file}?format=png`,
        `${file}?format=png&animated=true`,
        `${file}?format=png&quality=high`,
        `${file}?format=png&quality=lossless&animated=false`,
      ],
    ],
    ['quality of an attachment as gif', [`${file}?format=gif`, `${file}?format=gif&quality=high`]],
    [
      'animated on an attachment served as it is',
      [file, `${file}?animated=true`, `${file}?quality=lossless&animated=false`, `${file}?size=16`],
    ],
    [
      'escapes of path and query',
      [
        `${avatar}.png?size=64`,
        '/%61vatars/%31/%61b%2Epng?s%69ze=%36%34',
        `http://cdn.example${avatar}.png?size=64`,
        `HTTPS://user@cdn.example:8443${avatar}.png?size=64`,
        `${avatar}.png?size=64#size=16`,
      ],
    ],
    ['escapes of a file name', ['/attachments/1/2/%C3%A9.png', '/attachments/1/2/%c3%a9%2e%70ng']],
  ])('have one key: %s', (_, targets) => {
    expect(targets.length).toBeGreaterThan(1);
    expect(new Set(targets.map(keyOf)).size).toBe(1);
  });
});

describe('two URLs with different bytes', () => {
  it.each<[string, readonly string[]]>([
    ['format', ['png', 'jpg', 'webp', 'gif'].map((extension) => `${avatar}.${extension}`)],
    ['size', [`${avatar}.png?size=64`, `${avatar}.png`, `${avatar}.png?size=256`]],
    ['size or none', [`${sticker}.webp`, `${sticker}.webp?size=128`]],
    ['quality of a webp', ['high', 'low', 'lossless'].map((q) => `${avatar}.webp?quality=${q}`)],
    ['quality of a jpeg', ['high', 'low', 'lossless'].map((q) => `${avatar}.jpg?quality=${q}`)],
    ['low quality of a png', [`${avatar}.png`, `${avatar}.png?quality=low`]],
    ['low quality of a gif', [`${avatar}.gif`, `${avatar}.gif?quality=low`]],
    ['animation of a webp', [`${avatar}.webp`, `${avatar}.webp?animated=true`]],
    ['animation of a sticker', [`${sticker}.webp`, `${sticker}.webp?animated=false`]],
    ['animation of a gif attachment', [`${file}?format=gif`, `${file}?format=gif&animated=true`]],
    ['animation in the original’s format', [`${file}?width=9`, `${file}?width=9&animated=true`]],
    ['width and height', [`${file}?width=16`, `${file}?height=16`, `${file}?width=16&height=16`]],
    ['turned bounds', [`${file}?width=16&height=32`, `${file}?width=32&height=16`]],
    ['as it is and as it was', [file, `${file}?format=png`, `${file}?quality=high`]],
    ['quality in the original’s format', [`${file}?quality=high`, `${file}?quality=low`]],
    ['hash', [`${avatar}.png`, '/avatars/1/aB.png', '/avatars/1/a_a_ab.png', '/avatars/1/AB.png']],
    ['id', [`${avatar}.png`, '/avatars/2/ab.png', '/avatars/10/ab.png']],
    [
      'resource',
      [
        ...['avatars', 'icons', 'banners', 'splashes', 'embed-splashes'].map(
          (folder) => `/${folder}/1/ab.png`,
        ),
        '/emojis/1.webp',
        '/stickers/1.webp',
        '/guilds/1/users/1/avatars/ab.png',
        '/guilds/1/users/1/banners/ab.png',
        '/attachments/1/1/ab.png',
      ],
    ],
    [
      'file names that look like keys',
      [
        '/attachments/1/2/a?width=1',
        '/attachments/1/2/a%3Fwidth=1',
        '/attachments/1/2/a%3Fwidth=1?width=1',
        '/attachments/1/2/a%253Fwidth=1',
        '/attachments/1/2/a%3Fwidth=&height=&format=&quality=lossless&animated=false',
        '/attachments/1/2/a%3fwidth%3d1%26height=&format=&quality=lossless&animated=false?width=1',
        '/attachments/1/2/a',
      ],
    ],
    [
      'case and form of a file name',
      ['A', 'a', '%C3%A9', 'e%CC%81'].map((n) => `/attachments/1/2/${n}`),
    ],
  ])('have different keys: %s', (_, targets) => {
    expect(new Set(targets.map(keyOf)).size).toBe(targets.length);
  });
});

/** Every query of a kind, in its parts. */
const imageQuery = fc.record(
  {
    size: fc.constantFrom('16', '64', '128', '4096'),
    quality: fc.constantFrom('high', 'low', 'lossless'),
    animated: fc.constantFrom('true', 'false'),
  },
  { requiredKeys: [] },
);
const externalQuery = fc.record(
  {
    width: fc.constantFrom('1', '64', '4096'),
    height: fc.constantFrom('1', '64', '4096'),
    format: fc.constantFrom('png', 'jpg', 'jpeg', 'webp', 'gif'),
    quality: fc.constantFrom('high', 'low', 'lossless'),
    animated: fc.constantFrom('true', 'false'),
  },
  { requiredKeys: [] },
);
const drawn = fc.oneof(
  fc.record({
    path: fc.constantFrom(
      '/avatars/1/a_b.webp',
      '/icons/1/b.gif',
      '/emojis/1.png',
      '/stickers/1.webp',
    ),
    query: imageQuery,
    noise: fc.constantFrom('width=0', 'format=exe', 'height', 'v=1', 'Size=1', '', 'size%5B%5D=1'),
  }),
  fc.record({
    path: fc.constantFrom('/attachments/1/2/a.gif', '/attachments/1/2/%3Fwidth=1'),
    query: externalQuery,
    noise: fc.constantFrom('size=1', 'ex=66&is=65&hm=f0', '', 'toString=1', 'Width=0', 'f=%zz'),
  }),
);

function escapeAll(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join('');
}

describe('any query', () => {
  it('has the same key in whatever order, with whatever noise, however escaped', () => {
    fc.assert(
      fc.property(
        drawn.chain(({ path, query, noise }) => {
          const pairs = Object.entries(query).map(([name, value]) => `${name}=${value}`);
          const disguised = Object.entries(query).map(
            ([name, value]) => `${escapeAll(name)}=${escapeAll(value)}`,
          );
          return fc.record({
            plain: fc.constant([path, pairs.join('&')].join('?')),
            other: fc
              .shuffledSubarray([...disguised, noise], { minLength: pairs.length + 1 })
              .map((parts) => [path, parts.join('&')].join('?')),
          });
        }),
        ({ plain, other }) => {
          expect(keyOf(other)).toBe(keyOf(plain));
          expect(keyOf(other)).toMatch(/^[!->@-~]+\?[!->@-~]+$/); // ASCII, and one question mark
          expect(requestOf(other)).toEqual(requestOf(plain));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('has the same key exactly where the canonical request is the same', () => {
    const target = drawn.map(({ path, query }) =>
      [path, new URLSearchParams(query as Record<string, string>).toString()].join('?'),
    );
    fc.assert(
      fc.property(target, target, (one, other) => {
        const isSame = JSON.stringify(requestOf(one)) === JSON.stringify(requestOf(other));
        expect(keyOf(one) === keyOf(other)).toBe(isSame);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the canonical request', () => {
  it('of an asset', () => {
    expect(requestOf('/guilds/3/users/4/banners/a_ff.jpg?size=64&animated=true')).toEqual({
      resource: 'member banner',
      originKey: 'guilds/3/users/4/banners/ff',
      filename: undefined,
      widthPx: 64,
      heightPx: undefined,
      format: 'jpeg',
      quality: 'high',
      isAnimated: false,
      isPassthrough: false,
    });
  });

  it('of a bare sticker: as it was made', () => {
    expect(requestOf('/stickers/4.webp')).toMatchObject({
      originKey: 'stickers/4',
      widthPx: undefined,
      format: 'webp',
      quality: 'lossless',
      isAnimated: true,
    });
  });

  it('of an attachment', () => {
    expect(requestOf('/attachments/1/2/%C3%A9?height=7&format=jpg&quality=low')).toEqual({
      resource: 'attachment',
      originKey: 'attachments/1/2/é',
      filename: 'é',
      widthPx: undefined,
      heightPx: 7,
      format: 'jpeg',
      quality: 'low',
      isAnimated: false,
      isPassthrough: false,
    });
  });

  it.each([
    ['', true],
    ['?', true],
    ['?quality=lossless', true],
    ['?animated=true', true],
    ['?size=64', true],
    ['?quality=high', false],
    ['?quality=low', false],
    ['?width=1', false],
    ['?height=4096', false],
    ['?format=png', false],
  ])('of an attachment with %j is passthrough: %s', (query, isPassthrough) => {
    expect(requestOf(`${file}${query}`).isPassthrough).toBe(isPassthrough);
  });

  it('of an asset is never verbatim', () => {
    expect(requestOf('/stickers/1.gif?quality=lossless').isPassthrough).toBe(false);
  });
});

describe('a default avatar', () => {
  it.each(['', '?size=123&size=0', '?quality=bad&animated=1', '?'])(
    'reads nothing of its query %j',
    (query) => {
      expect(parseTarget(`/avatars/3.png${query}`)).toEqual({ kind: 'default avatar', index: '3' });
    },
  );

  it('is told apart from a user avatar by its path', () => {
    expect(requestOf('/avatars/3/4.png').originKey).toBe('avatars/3/4');
  });
});

describe('a target that is refused', () => {
  it.each([
    '/nothing/here.png?size=123',
    '/avatars/1/ab',
    'ftp://cdn.example/avatars/1/ab.png',
    'http://cdn.example',
    'http://cdn.example?/avatars/1/ab.png',
    'http:///x/avatars/1/ab.png',
    '?/avatars/1/ab.png',
    '#/avatars/1/ab.png',
    '//cdn.example/avatars/1/ab.png',
    '*',
    '',
  ])('is not found: %s', (target) => {
    const error = errorOf(target);
    expect(error.code).toBe('NOT_FOUND');
    expect(error.faults).toEqual([]);
    expect(isKnownPath(target)).toBe(false);
  });

  it.each<[string, readonly string[]]>([
    [
      '/avatars/01/!.bmp?size=123&quality=HIGH&animated=1',
      ['user_id', 'avatar_hash', 'ext', 'size', 'quality', 'animated'],
    ],
    ['/icons/x/ab.png?size=16&size=16', ['guild_id', 'size']],
    ['/stickers/x.png?size=1', ['sticker_id', 'ext', 'size']],
    ['/emojis/1.png?animated', ['animated']],
    ['/guilds/a/users/b/avatars/c.d?quality=', ['guild_id', 'user_id', 'ext', 'quality']],
    [
      '/attachments/-1/+1/%00?width=0&height=4097&format=PNG&quality=best&animated=on',
      [
        'channel_id',
        'attachment_id',
        'filename',
        'width',
        'height',
        'format',
        'quality',
        'animated',
      ],
    ],
    ['/avatars/x.gif?size=123', ['index', 'ext']],
  ])('names every fault of path and query at once: %s', (target, names) => {
    const error = errorOf(target);
    expect(error.code).toBe('INVALID_FORM_BODY');
    const told = error.faults.map(({ path }) => path);
    expect([...told].sort()).toEqual([...names].sort());
    expect(isKnownPath(target)).toBe(true);
  });

  it('is found, but wrong, where the path alone is at fault', () => {
    expect(isKnownPath('/avatars/x/y.z')).toBe(true);
    expect(errorOf('/avatars/x/y.z').faults.map(({ path }) => path)).toEqual(['user_id', 'ext']);
  });
});

describe('the contract and the service', () => {
  it('have the same rows', () => {
    const own = Object.values(resourceRows).map(
      ({ template, extensions = [], originKey = '', query }) => {
        return { path: template, extensions, originKey, query };
      },
    );
    const byPath = <Row extends { readonly path: string }>(all: readonly Row[]) =>
      all.toSorted((one, other) => (one.path < other.path ? -1 : 1));
    expect(byPath(own)).toEqual(byPath(rows));
  });
});
