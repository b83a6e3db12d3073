import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Least length of a key in bytes of UTF-8: the length of the digest (RFC 2104 §3). */
export const MIN_KEY_BYTES = 32;

export type SignatureEncoding = 'base64url' | 'hex';

/**
 * Keys that sign what a URL permits (contract §8 to §10): HMAC-SHA256, each key the UTF-8 bytes of a text. The first
 * key signs; any of them verifies, so that keys can be changed one by one.
 */
export class SigningKeys {
  readonly #texts: readonly string[];
  readonly #keys: readonly KeyObject[];
  readonly #first: KeyObject;

  /** @throws RangeError if there is no key, or one of less than 32 bytes; the message contains nothing of it */
  constructor(texts: readonly string[]) {
    this.#texts = [...texts];
    this.#keys = texts.map((text) => {
      const bytes = Buffer.from(text, 'utf8');
      if (bytes.length < MIN_KEY_BYTES) throw new RangeError(`${bytes.length} bytes are no key.`);
      return createSecretKey(bytes);
    });
    const [first] = this.#keys;
    if (first === undefined) throw new RangeError('Expected at least one key.');
    this.#first = first;
  }

  /** Texts of the keys, which the log redacts. */
  get secrets(): readonly string[] {
    return this.#texts;
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

function digest(key: KeyObject, message: string | Uint8Array, encoding: SignatureEncoding): string {
  return createHmac('sha256', key).update(message).digest(encoding);
}
