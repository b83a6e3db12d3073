/** HMAC-SHA256 by WebCrypto, with keys as `contract/signing/signing-keys.ts` reads them. */

/**
 * Keys that sign URLs: the value of the service's setting, separated by commas, or a list. Each key is a text of at least
 * 32 bytes, or `base64:` with the base64 of at least 32 bytes. The first key signs, all verify.
 */
export type SigningKeys = string | readonly string[];

type Encoding = 'base64url' | 'hex';

/** Minimum length of a key in bytes: the length of the digest (RFC 2104 §3). */
const MIN_KEY_BYTES = 32;

/** Signs with the first key. */
export async function sign(
  keys: SigningKeys,
  message: string | Bytes,
  encoding: Encoding,
): Promise<string> {
  const [first] = parseKeys(keys);
  return digest(first, message, encoding);
}

/** Whether one of the keys has signed a message; compares in constant time. */
export async function verifies(
  keys: SigningKeys,
  message: string | Bytes,
  signature: string,
  encoding: Encoding,
): Promise<boolean> {
  let isSigned = false;
  for (const key of parseKeys(keys)) {
    if (isEqual(await digest(key, message, encoding), signature)) isSigned = true;
  }
  return isSigned;
}

/** Bytes of a buffer that is not shared, as WebCrypto accepts them. */
export type Bytes = Uint8Array<ArrayBuffer>;

function parseKeys(keys: SigningKeys): [Bytes, ...Bytes[]] {
  const texts = typeof keys === 'string' ? keys.split(',') : keys;
  const [first, ...others] = texts.map((text, index) =>
    parseKey(text.trim(), `signingKeys: key ${index + 1} of ${texts.length}`),
  );
  if (first === undefined) throw new RangeError('signingKeys: expected at least one key.');
  return [first, ...others];
}

/** Messages do not contain any part of the key. */
function parseKey(text: string, subject: string): Bytes {
  const [, base64] = /^base64:(.*)$/s.exec(text) ?? [];
  const bytes = base64 === undefined ? encodeUtf8(text) : decodeBase64(base64);
  if (bytes === undefined) throw new RangeError(`${subject} is not valid base64.`);
  if (bytes.length < MIN_KEY_BYTES) {
    throw new RangeError(
      `${subject} has ${bytes.length} bytes; expected at least ${MIN_KEY_BYTES}.`,
    );
  }
  return bytes;
}

async function digest(key: Bytes, message: string | Bytes, encoding: Encoding): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await crypto.subtle.importKey('raw', key, algorithm, false, ['sign']);
  const data = typeof message === 'string' ? encodeUtf8(message) : message;
  const bytes = new Uint8Array(await crypto.subtle.sign('HMAC', imported, data));
  if (encoding === 'base64url') return encodeBase64Url(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function isEqual(expected: string, received: string): boolean {
  // The length of a signature is not secret.
  if (expected.length !== received.length) return false;
  let difference = 0;
  for (let index = 0; index < expected.length; index += 1) {
    difference |= expected.charCodeAt(index) ^ received.charCodeAt(index);
  }
  return difference === 0;
}

export function encodeUtf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Decodes UTF-8 with its byte order mark, if it has one; returns `undefined` for other bytes. */
export function decodeUtf8(bytes: Bytes): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function encodeBase64Url(bytes: Bytes): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Decodes base64url without padding; returns `undefined` for other spellings of the same bytes. */
export function decodeBase64Url(text: string): Bytes | undefined {
  if (!/^[\w-]*$/.test(text)) return undefined;
  const bytes = decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'));
  return bytes && encodeBase64Url(bytes) === text ? bytes : undefined;
}

function encodeBase64(bytes: Bytes): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Decodes base64 whose padding may be missing; returns `undefined` for other spellings of the same bytes. */
function decodeBase64(text: string): Bytes | undefined {
  try {
    const binary = atob(text);
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const encoded = encodeBase64(bytes);
    return text === encoded || text === encoded.replace(/=+$/, '') ? bytes : undefined;
  } catch {
    return undefined;
  }
}
