import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type SignatureEncoding, SigningKeys } from '../../../src/contract/signing/signing-keys.ts';

const first = 'an-example-key-of-thirty-two-bytes-or-more';
const second = 'the-key-of-last-month-which-still-verifies';
const encodings = ['base64url', 'hex'] as const satisfies readonly SignatureEncoding[];

const sign = (key: string, message: string, encoding: SignatureEncoding): string =>
  createHmac('sha256', key).update(message).digest(encoding);

describe('keys', () => {
  test.each(encodings)('the first signs, any verifies, in %s', (encoding) => {
    const keys = new SigningKeys([first, second]);
    expect(keys.sign('message', encoding)).toBe(sign(first, 'message', encoding));
    for (const key of [first, second]) {
      expect(keys.verifies('message', sign(key, 'message', encoding), encoding)).toBe(true);
      expect(keys.verifies('another', sign(key, 'message', encoding), encoding)).toBe(false);
    }
    const foreign = sign('a-key-that-nobody-here-has-ever-heard-of', 'message', encoding);
    expect(keys.verifies('message', foreign, encoding)).toBe(false);
  });

  test.each(encodings)('a signature has one spelling in %s', (encoding) => {
    const keys = new SigningKeys([first]);
    const signature = keys.sign('message', encoding);
    const characters = 'ABCDEFabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \0é';
    for (let at = 0; at < signature.length; at += 1) {
      for (const character of characters) {
        const changed = signature.slice(0, at) + character + signature.slice(at + 1);
        expect(keys.verifies('message', changed, encoding)).toBe(changed === signature);
      }
    }
    for (const changed of ['', signature.slice(0, -1), `${signature}=`, ` ${signature}`]) {
      expect(keys.verifies('message', changed, encoding)).toBe(false);
    }
  });

  test('a key is the bytes of a text in UTF-8, 32 at least', () => {
    const text = 'ключ'.repeat(4);
    expect(new SigningKeys([text]).sign('m', 'hex')).toBe(sign(text, 'm', 'hex'));
    expect(() => new SigningKeys([text.slice(1)])).toThrow(RangeError);
    expect(() => new SigningKeys([first, 'short'])).toThrow(RangeError);
    expect(() => new SigningKeys([])).toThrow(RangeError);
  });

  test('a key is in no text about the keys', () => {
    const keys = new SigningKeys([first]);
    expect(JSON.stringify(keys) + String(keys)).not.toContain(first);
    expect(keys.secrets).toEqual([first]);
  });
});
