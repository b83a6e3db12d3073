import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Least length of a key in bytes: the length of the digest (RFC 2104 §3). */
export const MIN_KEY_BYTES = 32;

const BASE64 = 'base64:';

export type SignatureEncoding = 'base64url' | 'hex';

/**
 * Keys that sign what a URL permits (contract §8 to §10): HMAC-SHA256. Each key is the UTF-8 bytes of a text, or the
 * bytes of which `base64:` precedes the standard base64 (contract §14). The first key signs; any of them verifies, so
 * that keys can be changed one by one.
 */
export class SigningKeys {
  readonly #secrets: readonly string[];
  readonly #keys: readonly KeyObject[];
  readonly #first: KeyObject;

  /** @throws RangeError if there is no key, one of less than 32 bytes, or bad base64; the message contains nothing of it */
  constructor(texts: readonly string[]) {
    this.#secrets = texts.map(secretOf);
    this.#keys = texts.map((text) => {
      const bytes = text.startsWith(BASE64) ? decodeBase64(secretOf(text)) : Buffer.from(text);
      if (bytes.length < MIN_KEY_BYTES) throw new RangeError(`${bytes.length} bytes are no key.`);
      return createSecretKey(bytes);
    });
    const [first] = this.#keys;
    if (first === undefined) throw new RangeError('Expected at least one key.');
    this.#first = first;
  }

  /** Texts of the keys, which the log redacts; base64 without its prefix and padding. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  get count(): number {
    return this.#keys.length;
  }

  /** Signs with the first key; text is signed as UTF-8. */
  sign(message: string | Uint8Array, encoding: SignatureEncoding): string {
    return digest(this.#first, message, encoding);
  }

  /**
   * Whether one of the keys has signed a message. All keys are tried, each in constant time, so that the time tells
   * neither how much of a signature is right nor which key made it.
   *
   * Encodings are compared, not the decoded bytes: a base64url text of 43 characters has two bits to spare, and four
   * spellings of the same bytes.
   */
  verifies(message: string | Uint8Array, signature: string, encoding: SignatureEncoding): boolean {
    const given = Buffer.from(signature, 'utf8');
    let isSigned = false;
    for (const key of this.#keys) {
      const expected = Buffer.from(digest(key, message, encoding), 'utf8');
      // The length of a signature is not secret.
      const isThis = expected.length === given.length && timingSafeEqual(expected, given);
      isSigned = isThis || isSigned;
    }
    return isSigned;
  }
}

/** Returns the secret part of a key's text; padding stays if it is not that of its length, and so is not valid. */
function secretOf(text: string): string {
  if (!text.startsWith(BASE64)) return text;
  const base64 = text.slice(BASE64.length);
  return base64.length % 4 === 0 ? base64.replace(/={1,2}$/, '') : base64;
}

/** @throws RangeError if the text is not canonical base64 without padding: Node's decoder skips what it cannot read */
function decodeBase64(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== text)
    throw new RangeError('A key is not base64.');
  return bytes;
}

function digest(key: KeyObject, message: string | Uint8Array, encoding: SignatureEncoding): string {
  return createHmac('sha256', key).update(message).digest(encoding);
}
