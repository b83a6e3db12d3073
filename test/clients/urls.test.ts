import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { kinds as kindRows } from '../../src/client/tables.ts';
import { MediaUrls, nearestSize, type Size, sizes, srcset } from '../../src/client/urls.ts';
import { extensions, formatOfExtension } from '../../src/contract/image-formats.ts';
import { ASSET_WIDTHS_PX, MAX_EDGE_PX, qualities } from '../../src/contract/media-query.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { resourceRows } from '../../src/contract/resources.ts';

const cdnUrl = 'https://cdn.example.com';
const urls = new MediaUrls({ cdnUrl, staticUrl: 'https://static.example.com/media/' });
const asMethods = urls as unknown as Readonly<Record<string, (...values: unknown[]) => string>>;

/** Calls a method by name, as JavaScript without types would. */
function call(method: string, ...values: readonly unknown[]): string {
  return (asMethods[method] ?? expect.fail(`there is no ${method}`)).call(urls, ...values);
}

function parse(url: string) {
  expect(url.startsWith(cdnUrl)).toBe(true);
  const target = parseTarget(url.slice(cdnUrl.length));
  return target.kind === 'media' ? target.request : expect.fail(url);
}

describe('MediaUrls builds the URL of', () => {
  test.each([
    [
      urls.avatar('1', 'a_cd34', { size: 80, animated: true }),
      '/avatars/1/a_cd34.webp?size=80&animated=true',
    ],
    [urls.avatar(2n ** 64n - 1n, 'ab12'), '/avatars/18446744073709551615/ab12.webp'],
    [urls.guildIcon('1', 'ab', { format: 'png', quality: 'low' }), '/icons/1/ab.png?quality=low'],
    [urls.guildBanner('1', 'ab', { size: 600 }), '/banners/1/ab.webp?size=600'],
    [urls.guildSplash('1', 'ab', { format: 'jpg' }), '/splashes/1/ab.jpg'],
    [urls.embedSplash('1', 'ab', { format: 'jpeg' }), '/embed-splashes/1/ab.jpeg'],
    [urls.memberAvatar('1', '2', 'ab'), '/guilds/1/users/2/avatars/ab.webp'],
    [urls.memberBanner('1', 2n, 'ab', { size: 480 }), '/guilds/1/users/2/banners/ab.webp?size=480'],
    [urls.emoji('7', { format: 'gif', size: 48 }), '/emojis/7.gif?size=48'],
    [urls.sticker('7', { animated: false }), '/stickers/7.webp?animated=false'],
    [urls.attachment('1', '2', 'my photo é.png'), '/attachments/1/2/my%20photo%20%C3%A9.png'],
    [
      urls.attachment('1', '2', 'a.mp4', { format: 'webp', height: 20, width: 10 }),
      '/attachments/1/2/a.mp4?width=10&height=20&format=webp',
    ],
    [urls.entranceSound('1', 'tada', { format: 'ogg' }), '/entrance-sounds/1/tada.ogg'],
  ])('%s', (url, expected) => {
    expect(url).toBe(`${cdnUrl}${expected}`);
  });

  test('the default avatar of each user, on the static address', () => {
    expect(urls.defaultAvatar('1471234567890123456')).toBe(
      'https://static.example.com/media/avatars/0.png',
    );
    expect(new MediaUrls({ cdnUrl }).defaultAvatar(11n)).toBe(`${cdnUrl}/avatars/5.png`);
  });

  test('every kind of media in the contract except signed ones', () => {
    const kinds = Object.keys(resourceRows).filter((kind) => kind !== 'external media');
    expect([...Object.keys(kindRows), 'default avatar'].toSorted()).toEqual(kinds.toSorted());
  });
});

describe('the service parses the requested options from the URL of', () => {
  const id = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  const hash = fc.stringMatching(/^(?:a_)?[A-Za-z0-9-][A-Za-z0-9_-]{0,63}$/);
  const filename = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 60 })
    .filter((text) => !/[/\\\p{Cc}\p{Cs}]|^\.{1,2}$/u.test(text));
  const values = { snowflake: id, hash, filename, name: hash };
  const shared = {
    quality: fc.option(fc.constantFrom(...qualities), { nil: undefined }),
    animated: fc.option(fc.boolean(), { nil: undefined }),
  };
  const assetOptions = fc.record({
    ...shared,
    size: fc.option(fc.constantFrom(...ASSET_WIDTHS_PX), { nil: undefined }),
  });
  const edge = fc.option(fc.integer({ min: 1, max: MAX_EDGE_PX }), { nil: undefined });
  const attachmentOptions = fc.record({
    ...shared,
    width: edge,
    height: edge,
    format: fc.option(fc.constantFrom(...extensions), { nil: undefined }),
  });
  const kinds = Object.entries(kindRows).filter(
    ([kind]) => !['theme', 'entrance sound', 'branding'].includes(kind),
  );

  test.each(kinds)('%s', (kind, { method, path, query, formats }) => {
    const placeholders = Array.from(path.matchAll(/:(\w+)\}/g), ([, each = '']) => each);
    const choices = formats ?? extensions;
    fc.assert(
      fc.property(
        fc.tuple(...placeholders.map((each) => values[each as keyof typeof values])),
        query === 'external' ? attachmentOptions : assetOptions,
        fc.constantFrom(...choices, undefined),
        (args, options, format) => {
          const extension = 'format' in options ? {} : { format };
          const request = parse(call(method, ...args, { ...options, ...extension }));
          expect(request.resource).toBe(kind);
          const fallback = query === 'external' ? undefined : 'webp';
          const wanted = 'format' in options ? options.format : (format ?? fallback);
          expect(request.format).toBe(
            wanted && formatOfExtension(wanted as Parameters<typeof formatOfExtension>[0]),
          );
          const usual = query === 'image' ? 128 : undefined;
          expect(request.widthPx).toBe('size' in options ? (options.size ?? usual) : options.width);
          expect(request.heightPx).toBe('height' in options ? options.height : undefined);
          if (query === 'external') expect(request.filename).toBe(args.at(-1));
          if (request.format === 'webp' && options.animated !== undefined) {
            expect(request.isAnimated).toBe(options.animated);
          }
          if (request.format === 'webp' && options.quality !== undefined) {
            expect(request.quality).toBe(options.quality);
          }
        },
      ),
    );
  });
});

describe('MediaUrls throws an error that names', () => {
  test.each<[method: string, values: unknown[], message: string]>([
    [
      'avatar',
      ['1', 'ab', { size: 63 }],
      'Invalid URL of user avatar: size is 63; expected one of 16, 20, 22',
    ],
    [
      'avatar',
      ['1', 'ab', { sise: 64 }],
      'sise is unknown; expected one of size, quality, animated.',
    ],
    [
      'avatar',
      [12, 'ab'],
      'user_id is 12; expected: A decimal integer from 0 to 18446744073709551615 without sign or leading zero. Pass a string or a bigint.',
    ],
    ['avatar', ['1', undefined], 'avatar_hash is undefined; expected: 1 to 128 characters'],
    ['avatar', [2n ** 64n, 'ab'], 'user_id is 18446744073709551616; expected: A decimal integer'],
    [
      'embedSplash',
      ['1', 'ab', { format: 'gif' }],
      'format is "gif"; expected one of png, jpg, jpeg, webp.',
    ],
    ['attachment', ['1', '2', '../x'], 'filename is "../x"; expected: 1 to 255 bytes'],
    ['attachment', ['1', '2', 'é'.repeat(128)], 'expected: 1 to 255 bytes'],
    ['attachment', ['1', '2', '\ud800'], 'expected: 1 to 255 bytes'],
    [
      'attachment',
      ['1', '2', 'a', { width: 4097 }],
      'width is 4097; expected an integer from 1 to 4096.',
    ],
    [
      'attachment',
      ['1', '2', 'a', { width: 1.5 }],
      'width is 1.5; expected an integer from 1 to 4096.',
    ],
    ['theme', ['midnight', {}], 'format is undefined; expected one of css.'],
    ['defaultAvatar', ['-1'], 'Invalid URL of default avatar: user_id is "-1"'],
    ['transform', ['/external/s/v2/x#y', {}], 'the URL has a fragment.'],
    ['transform', ['/a?width=1', { width: 2 }], 'the URL already has width.'],
  ])('%s, case %#', (method, values, message) => {
    expect(() => call(method, ...values)).toThrow(RangeError);
    expect(() => call(method, ...values)).toThrow(message);
  });

  test('all faults of a call at once', () => {
    const build = () => call('avatar', 'x', '', { size: 1, quality: 'best' });
    expect(build).toThrow(/user_id is "x".*avatar_hash is "".*size is 1.*quality is "best"/);
  });

  test.each(['', 'cdn.example.com', 'ftp://cdn.example.com', `${cdnUrl}?a`, `${cdnUrl}/#a`])(
    'the base address %j',
    (address) => {
      expect(() => new MediaUrls({ cdnUrl: address })).toThrow(/^cdnUrl is ".*"; expected an http/);
    },
  );
});

test.each([
  ['/attachments/1/2/a.png?ex=1&is=2&hm=3', '/attachments/1/2/a.png?ex=1&is=2&hm=3&width=550'],
  ['/external/s/%3Fw%3D1/https/a.example/b', '/external/s/%3Fw%3D1/https/a.example/b?width=550'],
  ['/attachments/1/2/a.png?', '/attachments/1/2/a.png?width=550'],
])('transform() adds parameters to %s and keeps its bytes', (url, expected) => {
  expect(urls.transform(url, { width: 550 })).toBe(expected);
  expect(urls.transform(url, {})).toBe(url);
});

describe('sizes', () => {
  test('match the contract', () => {
    expect(sizes).toEqual(ASSET_WIDTHS_PX);
  });

  test.each([
    [40, 1, 40],
    [40, 2, 80],
    [40, 2.625, 128],
    [5000, 2, 4096],
    [0.5, 1, 16],
  ])('nearestSize(%d, %d) is %d', (cssPx, dpr, size) => {
    expect(nearestSize(cssPx, dpr)).toBe(size);
    expect(urls.nearestSize(cssPx, dpr)).toBe(size);
  });

  test.each([0, -1, Number.NaN])('nearestSize() rejects %d', (value) => {
    expect(() => nearestSize(value)).toThrow(RangeError);
    expect(() => nearestSize(40, value)).toThrow(RangeError);
  });

  test('srcset() returns one URL for each pixel ratio, without duplicates', () => {
    const urlOf = (size: Size) => urls.avatar('1', 'ab', { size });
    expect(srcset(40, urlOf)).toBe(
      [`${urlOf(40)} 1x`, `${urlOf(80)} 2x`, `${urlOf(128)} 3x`].join(', '),
    );
    expect(srcset(4096, urlOf, [2, 1])).toBe(`${urlOf(4096)} 1x`);
  });
});
