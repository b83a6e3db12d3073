import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalUrlOf } from '../../../src/contract/external-url.ts';
import {
  externalKeyOf,
  formatExternalPath,
  formatOpaqueTarget,
  formatSegmentedTarget,
  readExternalPath,
  signTarget,
  verifyExternalPath,
} from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const keys = new SigningKeys([key]);
const example = 'https://media.example.org/a%20b/cat.png?w=1&h=2';

/** What a target stands for that is signed as it comes, one character for each byte. */
function read(target: string): string | undefined {
  const signature = keys.sign(Buffer.from(target, 'latin1'), 'base64url');
  return verifyExternalPath(`/external/${signature}/${target}`, keys);
}

describe('a path of external media', () => {
  test('is that of the contract, in both forms', () => {
    expect(formatExternalPath(example, keys)).toBe(
      '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI',
    );
    expect(signTarget(formatSegmentedTarget(example), keys)).toBe(
      '/external/HoAtalP99iQo3nVDVQZM3oMKkTMch6_OkYyR4qlGur0/%3Fw%3D1%26h%3D2/https/media.example.org/a%20b/cat.png',
    );
  });

  test.each([
    ['v2/aHR0cHM6Ly9hLmV4YW1wbGUv', 'https://a.example/'],
    ['https/a.example', 'https://a.example/'],
    ['https/a.example/', 'https://a.example/'],
    ['http/a.example:443/x', 'http://a.example:443/x'],
    ['https/[2001:db8::1]:80/x', 'https://[2001:db8::1]:80/x'],
    ['%3F/https/a.example/x', 'https://a.example/x?'],
    ['%3fa/https/a.example/x', 'https://a.example/x?a'],
    ['%3Fa%252Fb%3D%2526/https/a.example/x', 'https://a.example/x?a%2Fb=%26'],
    ['https/a.example/%3Fx/y', 'https://a.example/%3Fx/y'],
    ['https/a.example//x//', 'https://a.example//x//'],
    ['https/a.example/%E9%zz', 'https://a.example/%E9%zz'],
    ['https/a.example/v2/x', 'https://a.example/v2/x'],
    // As bytes, which is how a path in raw UTF-8 comes.
    ['https/a.example/\xc3\xa9', 'https://a.example/é'],
    ['https/u:p@a.example/', 'https://u:p@a.example/'],
    ['ftp/a.example/x', 'ftp://a.example/x'],
  ])('stands for a URL: %s', (target, url) => {
    expect(read(target)).toBe(url);
  });

  test.each([
    '',
    'v2',
    'v2/',
    'v2/aHR0cHM6Ly9hLmV4YW1wbGUv=', // padded
    'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYQ==',
    'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYR', // two bits to spare, not zero
    'v2/aHR0cHM6Ly9hLmV4/YW1wbGUv',
    'v2/aHR0cHM6Ly9hLmV4 YW1wbGUv',
    'v2/aHR0cHM6L+9h',
    'v2/gICAgA', // no UTF-8
    'https',
    'https/',
    'https//a.example/x', // the URL parser would skip a slash
    '%3Fa',
    '%3Fa/https',
    '%3F%zz/https/a.example/',
    '%3F%ff/https/a.example/',
    'https:%2F%2Fa.example/b.example/',
    '%68ttps/a.example/',
    'https/a.example/\xff',
  ])('may be signed and stand for nothing: %s', (target) => {
    expect(canonicalUrlOf(read(target) ?? 'http://unsigned.example/')).toBeUndefined();
  });

  test.each([
    '/external',
    '/external/',
    '/external//',
    '/external/x',
    '/external/x/',
    '/external/x/https/a.example/',
    `${formatExternalPath(example, keys)}/`,
    `/${formatExternalPath(example, keys)}`,
    formatExternalPath(example, keys).replace('/v2/', '//v2/'),
    formatExternalPath(example, keys).replace('external', '%65xternal'),
    signTarget('https/a.example/é', keys).replace('é', '\u01e9'),
  ])('is not signed: %s', (path) => {
    expect(verifyExternalPath(path, keys)).toBeUndefined();
  });

  test('is that of any of the keys', () => {
    const former = new SigningKeys(['the-key-of-last-month-which-still-verifies']);
    const both = new SigningKeys([key, ...former.secrets]);
    for (const signer of [keys, former]) {
      expect(verifyExternalPath(formatExternalPath(example, signer), both)).toBe(example);
    }
    expect(verifyExternalPath(formatExternalPath(example, former), keys)).toBeUndefined();
    expect(readExternalPath(formatExternalPath(example, former))).toBe(example);
  });
});

/** URLs as people write them: with all that the URL parser changes, and what it leaves. */
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

describe('for any URL', () => {
  test('both forms verify, and are one key', () => {
    fc.assert(
      fc.property(urls, (url) => {
        const canonical = canonicalUrlOf(url) ?? '';
        const targets = [
          formatOpaqueTarget(url),
          formatOpaqueTarget(canonical),
          formatSegmentedTarget(canonical),
        ];
        const texts = targets.map((target) => read(target) ?? '');
        expect(texts.map(canonicalUrlOf)).toEqual([canonical, canonical, canonical]);
        expect(new Set(texts.map(externalKeyOf))).toEqual(new Set([externalKeyOf(url)]));
        expect(canonicalUrlOf(canonical)).toBe(canonical);
      }),
    );
  });

  test('a changed byte anywhere is not signed', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(urls, fc.boolean(), fc.nat(), byte, (url, isOpaque, place, code) => {
        const canonical = canonicalUrlOf(url) ?? '';
        const target = isOpaque ? formatOpaqueTarget(url) : formatSegmentedTarget(canonical);
        const path = signTarget(target, keys);
        const at = place % path.length;
        const changed = path.slice(0, at) + String.fromCharCode(code) + path.slice(at + 1);
        expect(verifyExternalPath(changed, keys) === undefined).toBe(changed !== path);
      }),
    );
  });
});
