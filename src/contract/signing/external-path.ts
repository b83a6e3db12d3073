/**
 * Paths of external media, `/external/{signature}/{target}` (contract §8). The target is signed as it stands in
 * the path, and nothing of it is decoded before the signature is verified.
 */

import { createHash } from 'node:crypto';
import { canonicalUrlOf } from '../external-url.ts';
import type { SigningKeys } from './signing-keys.ts';

/** What all paths of external media begin with. */
const PREFIX = '/external/';

/** What an opaque target begins with. */
const OPAQUE = 'v2/';

/** Whether a path is below that of external media, signed or not. */
export function isExternalPath(rawPath: string): boolean {
  return rawPath.startsWith(PREFIX);
}

/**
 * The text of the URL that a signed path stands for.
 *
 * @param rawPath the path as it came, one character for each byte
 * @returns the text, which need not be a URL: what is signed is judged where it would be fetched. `undefined` where
 *   the signature is missing, malformed or of none of the keys
 */
export function verifyExternalPath(rawPath: string, keys: SigningKeys): string | undefined {
  const { signature, target } = splitPath(rawPath);
  // A character that is no byte cannot have come through HTTP.
  if (target === undefined || /[^\0-\xff]/.test(rawPath)) return undefined;
  const bytes = Buffer.from(target, 'latin1');
  return keys.verifies(bytes, signature, 'base64url') ? readTarget(bytes) : undefined;
}

/** The same for one who needs no signature, such as an operator who purges. */
export function readExternalPath(rawPath: string): string | undefined {
  const { target } = splitPath(rawPath);
  return target === undefined ? undefined : readTarget(Buffer.from(target, 'latin1'));
}

/** The path of a URL in the opaque form, signed with the first of the keys. */
export function formatExternalPath(url: string, keys: SigningKeys): string {
  return signTarget(formatOpaqueTarget(url), keys);
}

/** A path whose target is this one, signed with the first of the keys. */
export function signTarget(target: string, keys: SigningKeys): string {
  return `${PREFIX}${keys.sign(target, 'base64url')}/${target}`;
}

/** The opaque form: `v2/` and the base64url of the URL. */
export function formatOpaqueTarget(url: string): string {
  return `${OPAQUE}${Buffer.from(url).toString('base64url')}`;
}

/**
 * The segmented form: the query encoded once more, if there is one, the scheme, the host and the path.
 *
 * @param url in canonical form
 */
export function formatSegmentedTarget(url: string): string {
  const [, scheme = '', rest = '', query = ''] = /^(\w+):\/\/([^?]*)(\?.*)?$/.exec(url) ?? [];
  const first = query === '' ? '' : `${encodeURIComponent(query)}/`;
  return `${first}${scheme}/${rest}`;
}

/**
 * The key of external media, in the place of an original's key: of all spellings of a URL one, as short for a long
 * URL as for any, and the key of nothing that a storage can have.
 *
 * @param text a URL, or what was signed instead of one
 */
export function externalKeyOf(text: string): string {
  const name = canonicalUrlOf(text) ?? text;
  return `external/${createHash('sha256').update(name).digest('base64url')}`;
}

/** Whether a text has the form of such a key. */
export function isExternalKey(text: string): boolean {
  return /^external\/[\w-]{43}$/.test(text);
}

function splitPath(rawPath: string): {
  readonly signature: string;
  readonly target: string | undefined;
} {
  const rest = isExternalPath(rawPath) ? rawPath.slice(PREFIX.length) : '';
  const slash = rest.indexOf('/');
  return slash < 0
    ? { signature: '', target: undefined }
    : { signature: rest.slice(0, slash), target: rest.slice(slash + 1) };
}

/** The text of the URL; the empty text where it has neither form, which is no URL either. */
function readTarget(bytes: Buffer): string {
  const target = decodeUtf8(bytes) ?? '';
  if (target.startsWith(OPAQUE)) return decodeBase64Url(target.slice(OPAQUE.length)) ?? '';
  const segments = target.split('/');
  const query = /^%3F/i.test(target) ? decodeOnce(segments.shift() ?? '') : '';
  const [scheme = '', host = '', ...path] = segments;
  // Without a host, the URL parser would take the first segment of the path for one.
  if (query === undefined || !/^[a-z]+$/i.test(scheme) || host === '') return '';
  return `${scheme}://${host}/${path.join('/')}${query}`;
}

/** The text behind a base64url; `undefined` where it is not the one of its bytes, or these are no UTF-8. */
export function decodeBase64Url(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder takes padding, and skips what is no base64url.
  return bytes.toString('base64url') === text ? decodeUtf8(bytes) : undefined;
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function decodeOnce(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
