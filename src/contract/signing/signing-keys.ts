import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Length of the digest (RFC 2104 §3). */
export const MIN_KEY_BYTES = 32;

const BASE64 = 'base64:';

export type SignatureEncoding = 'base64url' | 'hex';

/**
 * HMAC-SHA256 keys of signed URLs (contract §8 to §10): text in UTF-8, or standard base64 after `base64:` (contract §14).
 * The first key signs; all verify, so that operators can rotate keys.
 */
export class SigningKeys {
  readonly #secrets: readonly string[];
  readonly #keys: readonly KeyObject[];
  readonly #first: KeyObject;

  /** @throws RangeError for an empty list, fewer than 32 bytes, or invalid base64; messages do not contain keys */
  constructor(texts: readonly string[]) {
    this.#secrets = texts.map(secretOf);
    this.#keys = texts.map((text) => {
      const bytes = text.startsWith(BASE64) ? decodeBase64(secretOf(text)) : Buffer.from(text);
      if (bytes.length < MIN_KEY_BYTES)
        throw new RangeError(`${bytes.length} bytes are too short.`);
      return createSecretKey(bytes);
    });
    const [first] = this.#keys;
    if (first === undefined) throw new RangeError('Expected at least one key.');
    this.#first = first;
  }

  /** Keys as text, for redaction; base64 without prefix and padding. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  get count(): number {
    return this.#keys.length;
  }

  sign(message: string | Uint8Array, encoding: SignatureEncoding): string {
    return digest(this.#first, message, encoding);
  }

  /**
   * Whether one of the keys has signed a message, in constant time. Compares encoded signatures: base64url of 43 characters
   * has two unused bits, so decoding would accept four spellings.
   */
  verifies(message: string | Uint8Array, signature: string, encoding: SignatureEncoding): boolean {
    const sent = Buffer.from(signature, 'utf8');
    let isSigned = false;
    for (const key of this.#keys) {
      const expected = Buffer.from(digest(key, message, encoding), 'utf8');
      const isEqual = expected.length === sent.length && timingSafeEqual(expected, sent);
      isSigned = isEqual || isSigned;
    }
    return isSigned;
  }
}

function secretOf(text: string): string {
  if (!text.startsWith(BASE64)) return text;
  const base64 = text.slice(BASE64.length);
  return base64.length % 4 === 0 ? base64.replace(/={1,2}$/, '') : base64;
}

/** @throws RangeError if the text is not canonical base64 without padding; Node's decoder skips invalid characters */
function decodeBase64(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== text)
    throw new RangeError('A key is not base64.');
  return bytes;
}

function digest(key: KeyObject, message: string | Uint8Array, encoding: SignatureEncoding): string {
  return createHmac('sha256', key).update(message).digest(encoding);
}
