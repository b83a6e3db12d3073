/** Paths of external media: `/external/{signature}/{target}` (contract §8). The signature covers the raw target. */

import { createHash } from 'node:crypto';
import { canonicalUrlOf } from '../external-url.ts';
import { decodeOnce } from '../media-path.ts';
import type { SigningKeys } from './signing-keys.ts';

const PREFIX = '/external/';
const PATH = /^\/external\/([^/]*)\/(.*)$/s;

const OPAQUE = 'v2/';

/**
 * Encodings of the path in a segmented target (contract §8, §14): `plain` as in the URL, `fluxer` with each segment
 * percent-encoded again. A target does not reveal its encoding.
 */
export const pathEncodings = ['plain', 'fluxer'] as const;
export type PathEncoding = (typeof pathEncodings)[number];

export function isExternalPath(rawPath: string): boolean {
  return rawPath.startsWith(PREFIX);
}

/**
 * Returns the text of the URL in a signed path, not yet validated; `undefined` without a valid signature.
 *
 * @param rawPath one character for each byte
 */
export function verifyExternalPath(
  rawPath: string,
  signingKeys: SigningKeys,
  encoding: PathEncoding = 'plain',
): string | undefined {
  const [, signature = '', target] = PATH.exec(rawPath) ?? [];
  // Characters beyond a byte cannot be part of an HTTP request.
  if (target === undefined || /[^\0-\xff]/.test(rawPath)) return undefined;
  const bytes = Buffer.from(target, 'latin1');
  return signingKeys.verifies(bytes, signature, 'base64url')
    ? readTarget(bytes, encoding)
    : undefined;
}

export function readExternalPath(
  rawPath: string,
  encoding: PathEncoding = 'plain',
): string | undefined {
  const [, , target] = PATH.exec(rawPath) ?? [];
  return target === undefined ? undefined : readTarget(Buffer.from(target, 'latin1'), encoding);
}

/** Formats the signed path of a URL, with an opaque target: `v2/` and the URL in base64url. */
export function formatExternalPath(url: string, signingKeys: SigningKeys): string {
  const target = `${OPAQUE}${Buffer.from(url).toString('base64url')}`;
  return `${PREFIX}${signingKeys.sign(target, 'base64url')}/${target}`;
}

/** Returns the origin key of external media, the same for all spellings of a URL. @param text a URL or other signed text */
export function externalKeyOf(text: string): string {
  const name = canonicalUrlOf(text) ?? text;
  return `external/${createHash('sha256').update(name).digest('base64url')}`;
}

export function isExternalKey(text: string): boolean {
  return /^external\/[\w-]{43}$/.test(text);
}

/** Decodes the URL; returns '' for targets that are neither opaque nor segmented. */
function readTarget(bytes: Buffer, encoding: PathEncoding): string {
  const target = decodeUtf8(bytes) ?? '';
  if (target.startsWith(OPAQUE)) return decodeBase64Url(target.slice(OPAQUE.length)) ?? '';
  const isEncoded = encoding === 'fluxer';
  const segments = target.split('/');
  const query = removeQuery(segments, isEncoded);
  const [scheme = '', host = '', ...rest] = segments;
  const path = isEncoded ? decodeOnce(rest.join('/')) : rest.join('/');
  // Without a host, the URL parser would use the first path segment as host.
  if (query === undefined || path === undefined || !/^[a-z]+$/i.test(scheme) || host === '') {
    return '';
  }
  return `${scheme}://${host}/${path}${query}`;
}

/**
 * Removes the query from the segments and returns it with its `?`; `undefined` if it is malformed. In old URLs of the
 * platform, it precedes the scheme without a `?`.
 */
function removeQuery(segments: string[], isEncoded: boolean): string | undefined {
  if (!isEncoded) {
    return /^%3F/i.test(segments[0] ?? '') ? decodeOnce(segments.shift() ?? '') : '';
  }
  const scheme = segments.findIndex((segment) => /^https?$/i.test(segment));
  const query = decodeOnce(segments.splice(0, Math.max(scheme, 0)).join('/'))?.replace(/^\?/, '');
  return query && `?${query}`;
}

/** Decodes canonical base64url of UTF-8; returns `undefined` for other texts. */
export function decodeBase64Url(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder also accepts padding, and skips invalid characters.
  return bytes.toString('base64url') === text ? decodeUtf8(bytes) : undefined;
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
