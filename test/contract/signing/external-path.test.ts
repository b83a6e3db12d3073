import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalUrlOf } from '../../../src/contract/external-url.ts';
import {
  externalKeyOf,
  formatExternalPath,
  type PathEncoding,
  verifyExternalPath,
} from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { formatSegmentedPath } from '../../../tools/documents/external-vectors.ts';

const keys = new SigningKeys(['an-example-key-of-thirty-two-bytes-or-more']);

/** Returns the URL of a signed target with one character for each byte. */
function read(target: string, encoding?: PathEncoding): string | undefined {
  const signature = keys.sign(Buffer.from(target, 'latin1'), 'base64url');
  return verifyExternalPath(`/external/${signature}/${target}`, keys, encoding);
}

// docs/external-vectors.json has both forms of complete URLs.
test.each([
  ['https/a.example', 'https://a.example/'],
  ['http/a.example:443/x', 'http://a.example:443/x'],
  ['https/[2001:db8::1]:80/x', 'https://[2001:db8::1]:80/x'],
  ['%3F/https/a.example/x', 'https://a.example/x?'],
  ['%3fa/https/a.example/x', 'https://a.example/x?a'],
  ['%3Fa%252Fb%3D%2526/https/a.example/x', 'https://a.example/x?a%2Fb=%26'],
  ['https/a.example/%3Fx/y', 'https://a.example/%3Fx/y'],
  ['https/a.example//x//', 'https://a.example//x//'],
  ['https/a.example/%E9%zz', 'https://a.example/%E9%zz'],
  ['https/a.example/v2/x', 'https://a.example/v2/x'],
  // Bytes, like a path in raw UTF-8.
  ['https/a.example/\xc3\xa9', 'https://a.example/é'],
  ['https/u:p@a.example/', 'https://u:p@a.example/'],
  ['ftp/a.example/x', 'ftp://a.example/x'],
])('%s is the URL %s', (target, url) => {
  expect(read(target)).toBe(url);
});

const stray = [
  ...['', 'v2', 'v2/', 'https', 'https/', '%3Fa', '%3Fa/https', '%68ttps/a.example/'],
  ...['v2/aHR0cHM6Ly9hLmV4YW1wbGUv=', 'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYQ=='], // padded
  'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYR', // two unused bits that are not zero
  ...['v2/aHR0cHM6Ly9hLmV4/YW1wbGUv', 'v2/aHR0cHM6Ly9hLmV4 YW1wbGUv', 'v2/aHR0cHM6L+9h'],
  ...['v2/gICAgA', '%3F%ff/https/a.example/', 'https/a.example/\xff'], // invalid UTF-8
  'https//a.example/x', // the URL parser would ignore the missing slash
  ...['%3F%zz/https/a.example/', 'https:%2F%2Fa.example/b.example/'],
];

test('accepts a signed target that is not a URL', () => {
  const urlOf = (target: string) => canonicalUrlOf(read(target) ?? 'http://unsigned.example/');
  expect(stray.filter((target) => urlOf(target) !== undefined)).toEqual([]);
});

describe('paths that are percent-encoded twice', () => {
  // Contract §14. The platform's signer signed these targets with this key.
  const platformKeys = new SigningKeys(['wire-sheet-example-key-0123456789abcdef']);
  const opaque = 'v2/aHR0cHM6Ly9tLmV4YW1wbGUub3JnL2ElMjBiL2NhdC5wbmc';
  const withQuery = '%3Fw%3D1%26u%3Dhttps%253A%252F%252Fx.org%252Fy/https/m.example.org/i.png';
  const vectors = [
    ['/a%20b/cat.png', 'https/m.example.org/a%2520b/cat.png', 'Msz6cRZJfFpTDjA2pK6Ku0u770_KXpA6zePM_Nwj_8M'],
    ['/caf%C3%A9.png', 'https/m.example.org/caf%25C3%25A9.png', 'lA_GeavmDFj5CzqOAgEWaJvgEBx1SHzUrQnUqTWcqrs'],
    ['/i.png?w=1&u=https%3A%2F%2Fx.org%2Fy', withQuery, 'Z3Femcc3JtD5WoONzaIen4X7jt18oiz_l9J0W1rzXVU'],
    [':8443/a:b@2x,1.png', 'https/m.example.org:8443/a%3Ab%402x%2C1.png', 'LAZseicF5AhqNSIfq4CTmgOGIpx34LDbqS6qUY-OlTg'],
    ['/dir/', 'http/m.example.org/dir/', 'mKUcQKuzLAN-1Ivob0iwwYn0NICxW-iM2cwAbB13zu0'],
    ['/100%25/a%2Fb.png', 'https/m.example.org/100%2525/a%252Fb.png', '6WrH1Lj5H2ZUuz6dW3C-3AK66CfTGHAs0PhbugG_kbI'],
    ['/a.png?w=1&h=2', 'w%3D1%26h%3D2/https/m.example.org/a.png', 'CeEo_lJsD47J5FymP_ZW_Kf3jWx1INU_6I6LiVxfQAs'],
    ['/a%20b/cat.png', opaque, 'C4gxOKE35ObpgC73hdf4Z0vhiUoJLaaRFgpV-fSOxKU'],
  ] as const; // biome-ignore format: one vector a line

  test.each(vectors)('are https://m.example.org%s: %s', (rest, target, signature) => {
    const path = `/external/${signature}/${target}`;
    const url = verifyExternalPath(path, platformKeys, 'fluxer') ?? '';
    const scheme = rest === '/dir/' ? 'http' : 'https';
    expect(canonicalUrlOf(url)).toBe(`${scheme}://m.example.org${rest}`);
  });

  test.each([
    // Everything before the scheme is the query, unless it is empty.
    ['u%3Da/b%3Dc/https/a.example/x', 'https://a.example/x?u=a/b=c'],
    ['cat/http/a.example', 'http://a.example/?cat'],
    ['%3F/https/a.example/x', 'https://a.example/x'],
    ['%3F%3F/https/a.example/x', 'https://a.example/x??'],
    ['HTTPS/a.example/https/x', 'https://a.example/https/x'],
    // Some signers do not encode all characters.
    ['https/a.example/caf%C3%A9', 'https://a.example/caf%C3%A9'],
    ['https/a.example/caf\xc3\xa9', 'https://a.example/caf%C3%A9'],
    ['https/a.example/x%2Fy', 'https://a.example/x/y'],
    ['https/a.example/x/%252E%252E/y', 'https://a.example/y'],
    ['https/a.example/x%3Fw%3D1', 'https://a.example/x?w=1'],
    ['%3Fw%3D1/https/a.example/x', 'https://a.example/x?w=1'],
  ])('%s is the URL %s', (target, url) => {
    expect(canonicalUrlOf(read(target, 'fluxer') ?? '')).toBe(url);
  });

  test.each(['%', '%zz', '%ff', '%C3/%A9', 'x%0A', '%00', 'x%7F'])(
    '%s is not a valid path',
    (path) => {
      const texts = [`https/a.example/${path}`, `${path}/https/a.example/x`];
      const urls = texts.map((target) =>
        canonicalUrlOf(read(target, 'fluxer') ?? 'http://a.example'),
      );
      expect(urls).toEqual([undefined, undefined]);
    },
  );
});

/** URLs with everything that the URL parser changes or keeps. */
const urls = fc
  .tuple(
    fc.constantFrom('http', 'https', 'HTTPS'),
    fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    ),
    fc.constantFrom('', '.', ':80', ':443', ':8443'),
    fc.array(
      fc.oneof(fc.webSegment(), fc.string({ unit: 'grapheme' }), fc.constantFrom('..', '%2e')),
    ),
    fc.option(fc.oneof(fc.webQueryParameters(), fc.string({ unit: 'grapheme' }))),
    fc.option(fc.webFragments()),
  )
  .map(([scheme, host, end, segments, query, fragment]) => {
    const path = segments.map((segment) => `/${segment}`).join('');
    const search = query === null ? '' : `?${query}`;
    return `${scheme}://${host}${end}${path}${search}${fragment === null ? '' : `#${fragment}`}`;
  })
  .filter((url) => canonicalUrlOf(url) !== undefined);

/** Formats a target like the platform: each segment and the query are percent-encoded again. */
function formatAsPlatform(url: string): string {
  const { protocol, host, pathname, search } = new URL(url);
  const segments = pathname === '/' ? [] : pathname.slice(1).split('/');
  const query = search === '' ? [] : [encodeURIComponent(search)];
  return [...query, protocol.slice(0, -1), host, ...segments.map(encodeURIComponent)].join('/');
}

test('verifies both forms of any URL, with the same key', () => {
  fc.assert(
    fc.property(urls, (url) => {
      const canonical = canonicalUrlOf(url) ?? '';
      const paths = [
        formatExternalPath(url, keys),
        formatExternalPath(canonical, keys),
        formatSegmentedPath(canonical, keys),
      ];
      const texts = paths.map((path) => verifyExternalPath(path, keys) ?? '');
      expect(texts.map(canonicalUrlOf)).toEqual([canonical, canonical, canonical]);
      expect(new Set(texts.map(externalKeyOf))).toEqual(new Set([externalKeyOf(url)]));
      expect(canonicalUrlOf(canonical)).toBe(canonical);
      const encodedTwice = read(formatAsPlatform(canonical), 'fluxer') ?? '';
      const { search, pathname, origin } = new URL(canonical);
      expect(canonicalUrlOf(encodedTwice)).toBe(`${origin}${pathname}${search}`);
    }),
  );
});
