import { describe, expect, test } from 'vitest';
import {
  MAX_CAPABILITY_LENGTH,
  signCapabilityText,
  verifyCapability,
} from '../../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';

const keys = new SigningKeys(['an-example-key-of-thirty-two-bytes-or-more']);

const NOW = 1_800_000_000;
const fields = { k: 'avatars/1/ab12', m: 'put', e: NOW + 60 };
const signed = (value: object): string => signCapabilityText(JSON.stringify(value), keys);
const isTaken = (text: string): boolean => verifyCapability(text, keys, NOW) !== undefined;

/** What docs/upload-vectors.json has, which is sent to the service, is not said again here. */
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

  test.each([
    ['the fields that must be', fields],
    ['a field of another release', { ...fields, x: [{ a: 1 }, { a: 1 }] }],
    ['no byte at all', { ...fields, mb: 0 }],
    ['a type with parameters', { ...fields, ct: 'text/plain; charset=utf-8' }],
    ['the last part', { ...fields, u: 'x', p: 10_000 }],
  ])('may have %s', (_, value) => {
    expect(isTaken(signed(value))).toBe(true);
  });

  test.each<[string, object]>([
    ['a key that is no text', { ...fields, k: 1 }],
    ['an end that no number can tell', { ...fields, e: 2 ** 60 }],
    ['a bucket that is no text', { ...fields, b: null }],
    ['a type that is no text', { ...fields, ct: ['image/png'] }],
    ['a type with a line end', { ...fields, ct: 'image/png\r\nx: y' }],
    ['a size below 0', { ...fields, mb: -1 }],
    ['a part without an upload', { ...fields, p: 1 }],
    ['an upload without a name', { ...fields, u: '', p: 1 }],
    ['part 10 001', { ...fields, u: 'x', p: 10_001 }],
    ['a part in text', { ...fields, u: 'x', p: '1' }],
  ])('cannot have %s', (_, value) => {
    expect(isTaken(signed(value))).toBe(false);
  });

  test.each([
    ['a field twice that is not known', '{"x":1,"x":1,"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['a field twice within one', '{"x":{"y":1,"y":2},"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['a field twice around one', '{"m":"put","x":{},"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['half a text', '{"k":"avatars/1/a","m":"put","e":1900000000'],
    ['a byte order mark', '\ufeff{"k":"avatars/1/a","m":"put","e":1900000000}'],
    ['something behind it', '{"k":"avatars/1/a","m":"put","e":1900000000}{}'],
    ['nothing', ''],
    ['null', 'null'],
  ])('is no JSON with %s', (_, json) => {
    expect(isTaken(signCapabilityText(json, keys))).toBe(false);
  });

  test('what looks like a field within a text is none', () => {
    expect(isTaken(signed({ ...fields, x: '{"k":1,"k":2}', y: '"k":' }))).toBe(true);
    expect(isTaken(signed({ x: { k: 1 }, ...fields, y: { k: 2 } }))).toBe(true);
  });

  test('is signed as the text that it is, in the one base64url of its bytes', () => {
    const json = JSON.stringify(fields);
    const payload = Buffer.from(json).toString('base64url');
    const padded = Buffer.from(json.padEnd(3 * 40 + 1)).toString('base64');
    const spellings = [`${payload}=`, ` ${payload}`, `${payload}\n`, padded, `${payload}A`];
    for (const spelling of spellings) {
      expect(isTaken(`${spelling}.${keys.sign(spelling, 'base64url')}`)).toBe(false);
    }
    // The last character of 2 bytes has two bits to spare.
    const spare = Buffer.from(json.padEnd(3 * 40 + 2)).toString('base64url');
    const other = spare.slice(0, -1) + String.fromCharCode(spare.charCodeAt(spare.length - 1) + 1);
    expect(isTaken(`${spare}.${keys.sign(spare, 'base64url')}`)).toBe(true);
    expect(isTaken(`${other}.${keys.sign(other, 'base64url')}`)).toBe(false);
  });

  test.each([
    ['no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ['UTF-16', Buffer.from(JSON.stringify(fields), 'utf16le')],
  ])('is not %s', (_, bytes) => {
    const payload = bytes.toString('base64url');
    expect(isTaken(`${payload}.${keys.sign(payload, 'base64url')}`)).toBe(false);
  });

  test('has two parts, and 16 384 characters at most', () => {
    const text = signed(fields);
    const [payload = '', signature = ''] = text.split('.');
    for (const wrong of [
      '',
      '.',
      payload,
      `${text}.`,
      `.${text}`,
      `${payload}.`,
      `.${signature}`,
    ]) {
      expect(isTaken(wrong)).toBe(false);
    }
    const ofLength = (length: number): string => {
      for (let size = 11_000; ; size += 1) {
        const long = signed({ ...fields, x: 'x'.repeat(size) });
        if (long.length >= length) return long;
      }
    };
    const longest = ofLength(MAX_CAPABILITY_LENGTH - 1);
    expect([longest.length, isTaken(longest)]).toEqual([longest.length, true]);
    expect(longest.length).toBeLessThanOrEqual(MAX_CAPABILITY_LENGTH);
    expect(isTaken(ofLength(MAX_CAPABILITY_LENGTH + 1))).toBe(false);
  });
});
