import { describe, expect, test } from 'vitest';
import {
  signCapabilityText,
  verifyCapability,
} from '../../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';

const keys = new SigningKeys(['an-example-key-of-thirty-two-bytes-or-more']);

const NOW = 1_800_000_000;
const fields = { k: 'avatars/1/ab12', m: 'put', e: NOW + 60 };
const signed = (value: object): string => signCapabilityText(JSON.stringify(value), keys);
const isTaken = (text: string): boolean => verifyCapability(text, keys, NOW) !== undefined;

/** What docs/upload-vectors.json has, and what conversations of test/surface draw, is not said again here. */
describe('a capability', () => {
  test.each([
    [
      {
        ...{ b: 'media', k: 'attachments/1/2/cat picture.png', m: 'put', ct: 'image/png' },
        ...{ mb: 1_000, e: NOW + 1, u: '2~abc', p: 7, o: true },
      },
      {
        bucket: 'media',
        key: 'attachments/1/2/cat picture.png',
        contentType: 'image/png',
        maxBytes: 1_000,
        expiresAtSeconds: NOW + 1,
        part: { uploadId: '2~abc', partNumber: 7 },
        replaces: true,
      },
    ],
    [fields, { key: 'avatars/1/ab12', expiresAtSeconds: NOW + 60, replaces: false }],
  ])('of %j is read', (given, permitted) => {
    expect(verifyCapability(signed(given), keys, NOW)).toEqual(permitted);
  });

  test('ends with the second that it names', () => {
    const text = signed({ ...fields, e: NOW });
    expect(verifyCapability(text, keys, NOW - 1)).toBeDefined();
    expect(verifyCapability(text, keys, NOW - 0.001)).toBeDefined();
    expect(verifyCapability(text, keys, NOW)).toBeUndefined();
  });

  test.each<[string, object]>([
    ['an end that no number can tell', { ...fields, e: 2 ** 60 }],
    ['a type with a line end', { ...fields, ct: 'image/png\r\nx: y' }],
    ['an upload without a name', { ...fields, u: '', p: 1 }],
    ['part 10 001', { ...fields, u: 'x', p: 10_001 }],
  ])('cannot have %s', (_, value) => {
    expect(isTaken(signed(value))).toBe(false);
  });

  test.each([
    ['a field twice that is not known', '{"x":1,"x":1,"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['a field twice within one', '{"x":{"y":1,"y":2},"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['a field twice around one', '{"m":"put","x":{},"k":"avatars/1/a","m":"put","e":1900000000}'],
  ])('is no JSON with %s', (_, json) => {
    expect(isTaken(signCapabilityText(json, keys))).toBe(false);
  });

  test('what looks like a field within a text is none', () => {
    expect(isTaken(signed({ ...fields, x: '{"k":1,"k":2}', y: '"k":' }))).toBe(true);
    expect(isTaken(signed({ x: { k: 1 }, ...fields, y: { k: 2 } }))).toBe(true);
  });
});
