/** HMAC-SHA256 with WebCrypto; keys have the format of `contract/signing/signing-keys.ts`. */

/**
 * Keys that sign URLs: the comma-separated value of the service's setting, or a list. Each has at least 32 bytes, as text
 * or as base64 after `base64:`. The first key signs; all verify.
 */
export type SigningKeys = string | readonly string[];

type Encoding = 'base64url' | 'hex';

/** Shorter keys than the digest are discouraged (RFC 2104 §3). */
const MIN_KEY_BYTES = 32;

export async function sign(
  keys: SigningKeys,
  message: string | Bytes,
  encoding: Encoding,
): Promise<string> {
  const [first] = parseKeys(keys);
  return digest(first, message, encoding);
}

/** Whether one of the keys has signed a message, in constant time. */
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

/** Bytes that WebCrypto accepts, which excludes shared buffers. */
export type Bytes = Uint8Array<ArrayBuffer>;

function parseKeys(keys: SigningKeys): [Bytes, ...Bytes[]] {
  const texts = typeof keys === 'string' ? keys.split(',') : keys;
  const [first, ...others] = texts.map((text, index) =>
    parseKey(text.trim(), `signingKeys: key ${index + 1} of ${texts.length}`),
  );
  if (first === undefined) throw new RangeError('signingKeys: expected at least one key.');
  return [first, ...others];
}

/** @throws RangeError whose message contains no part of the key */
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

/** Decodes UTF-8 and keeps a byte order mark; returns `undefined` for invalid bytes. */
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

/** Decodes canonical base64url without padding; returns `undefined` for other texts. */
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

/** Decodes canonical base64 with or without padding; returns `undefined` for other texts. */
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
