/**
 * Paths of external media, `/external/{signature}/{target}` (contract §8). The signature covers the target as it stands
 * in the path; nothing of the target is decoded before the signature is verified.
 */

import { createHash } from 'node:crypto';
import { canonicalUrlOf } from '../external-url.ts';
import { decodeOnce } from '../media-path.ts';
import type { SigningKeys } from './signing-keys.ts';

const PREFIX = '/external/';
const PATH = /^\/external\/([^/]*)\/(.*)$/s;

const OPAQUE = 'v2/';

/**
 * Encodings of the path in a segmented target (contract §8, §14): `plain` as it stands in the URL; `fluxer` each segment
 * percent-encoded once more. Nothing in a target tells which of the two it has.
 */
export const pathEncodings = ['plain', 'fluxer'] as const;
export type PathEncoding = (typeof pathEncodings)[number];

/** Whether a path belongs to external media, signed or not. */
export function isExternalPath(rawPath: string): boolean {
  return rawPath.startsWith(PREFIX);
}

/**
 * Returns the URL text of a signed path.
 *
 * @param rawPath the path as it came, one character for each byte
 * @returns the text, which need not be a URL: the text is checked when it would be fetched. `undefined` if the
 *   signature is missing, malformed or made with none of the keys
 */
export function verifyExternalPath(
  rawPath: string,
  keys: SigningKeys,
  encoding: PathEncoding = 'plain',
): string | undefined {
  const [, signature = '', target] = PATH.exec(rawPath) ?? [];
  // HTTP cannot deliver a character that is not a byte.
  if (target === undefined || /[^\0-\xff]/.test(rawPath)) return undefined;
  const bytes = Buffer.from(target, 'latin1');
  return keys.verifies(bytes, signature, 'base64url') ? readTarget(bytes, encoding) : undefined;
}

/** Returns the URL text without checking the signature, for example for an operator who purges. */
export function readExternalPath(
  rawPath: string,
  encoding: PathEncoding = 'plain',
): string | undefined {
  const [, , target] = PATH.exec(rawPath) ?? [];
  return target === undefined ? undefined : readTarget(Buffer.from(target, 'latin1'), encoding);
}

/** Formats the path of a URL in the opaque form, `v2/` and the base64url of the URL, signed with the first of the keys. */
export function formatExternalPath(url: string, keys: SigningKeys): string {
  const target = `${OPAQUE}${Buffer.from(url).toString('base64url')}`;
  return `${PREFIX}${keys.sign(target, 'base64url')}/${target}`;
}

/**
 * Returns the key of external media, which takes the place of an original's key: the same for all spellings of a URL,
 * equally short for all URLs, and never the key of a stored original.
 *
 * @param text a URL, or what was signed instead of one
 */
export function externalKeyOf(text: string): string {
  const name = canonicalUrlOf(text) ?? text;
  return `external/${createHash('sha256').update(name).digest('base64url')}`;
}

/** Whether a text has the form of a key of external media. */
export function isExternalKey(text: string): boolean {
  return /^external\/[\w-]{43}$/.test(text);
}

/** Decodes the text of the URL; returns the empty text, which is not a URL, if the target has neither form. */
function readTarget(bytes: Buffer, encoding: PathEncoding): string {
  const target = decodeUtf8(bytes) ?? '';
  if (target.startsWith(OPAQUE)) return decodeBase64Url(target.slice(OPAQUE.length)) ?? '';
  const isEncoded = encoding === 'fluxer';
  const segments = target.split('/');
  const query = takeQuery(segments, isEncoded);
  const [scheme = '', host = '', ...rest] = segments;
  const path = isEncoded ? decodeOnce(rest.join('/')) : rest.join('/');
  // Without a host, the URL parser would take the first segment of the path for one.
  if (query === undefined || path === undefined || !/^[a-z]+$/i.test(scheme) || host === '') {
    return '';
  }
  return `${scheme}://${host}/${path}${query}`;
}

/**
 * Takes the query out of the segments, and returns the query with its `?`; `undefined` if it is malformed. Old URLs of
 * the platform omit the `?`: there, all before the scheme is the query.
 */
function takeQuery(segments: string[], isEncoded: boolean): string | undefined {
  if (!isEncoded) {
    return /^%3F/i.test(segments[0] ?? '') ? decodeOnce(segments.shift() ?? '') : '';
  }
  const scheme = segments.findIndex((segment) => /^https?$/i.test(segment));
  const query = decodeOnce(segments.splice(0, Math.max(scheme, 0)).join('/'))?.replace(/^\?/, '');
  return query && `?${query}`;
}

/** Decodes canonical base64url; returns `undefined` for other spellings, and for bytes that are not UTF-8. */
export function decodeBase64Url(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder accepts padding, and skips characters that are not base64url.
  return bytes.toString('base64url') === text ? decodeUtf8(bytes) : undefined;
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
