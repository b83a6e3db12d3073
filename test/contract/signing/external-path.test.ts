import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalUrlOf } from '../../../src/contract/external-url.ts';
import {
  externalKeyOf,
  formatExternalPath,
  verifyExternalPath,
} from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { formatSegmentedPath } from '../../../tools/documents/external-vectors.ts';

const keys = new SigningKeys(['an-example-key-of-thirty-two-bytes-or-more']);

/** What a target stands for that is signed as it comes, one character for each byte. */
function read(target: string): string | undefined {
  const signature = keys.sign(Buffer.from(target, 'latin1'), 'base64url');
  return verifyExternalPath(`/external/${signature}/${target}`, keys);
}

// Both forms of whole URLs: docs/external-vectors.json.
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
  // As bytes, which is how a path in raw UTF-8 comes.
  ['https/a.example/\xc3\xa9', 'https://a.example/é'],
  ['https/u:p@a.example/', 'https://u:p@a.example/'],
  ['ftp/a.example/x', 'ftp://a.example/x'],
])('%s stands for %s', (target, url) => {
  expect(read(target)).toBe(url);
});

const stray = [
  ...['', 'v2', 'v2/', 'https', 'https/', '%3Fa', '%3Fa/https', '%68ttps/a.example/'],
  ...['v2/aHR0cHM6Ly9hLmV4YW1wbGUv=', 'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYQ=='], // padded
  'v2/aHR0cHM6Ly9hLmV4YW1wbGUvYR', // two bits to spare, not zero
  ...['v2/aHR0cHM6Ly9hLmV4/YW1wbGUv', 'v2/aHR0cHM6Ly9hLmV4 YW1wbGUv', 'v2/aHR0cHM6L+9h'],
  ...['v2/gICAgA', '%3F%ff/https/a.example/', 'https/a.example/\xff'], // no UTF-8
  'https//a.example/x', // the URL parser would skip a slash
  ...['%3F%zz/https/a.example/', 'https:%2F%2Fa.example/b.example/'],
];

test('what is signed may stand for nothing', () => {
  const urlOf = (target: string) => canonicalUrlOf(read(target) ?? 'http://unsigned.example/');
  expect(stray.filter((target) => urlOf(target) !== undefined)).toEqual([]);
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

test('both forms of any URL verify, and are one key', () => {
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
    }),
  );
});
