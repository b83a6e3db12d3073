import {
  type Bytes,
  decodeBase64Url,
  decodeUtf8,
  encodeBase64Url,
  encodeUtf8,
  type SigningKeys,
  sign,
  verifies,
} from './hmac.ts';
import { decodeOnce, parseBase, quote, splitUrl } from './values.ts';

/** Contract §8. */
const MAX_URL_BYTES = 8_192;

/** Returns the URL at which the service serves media of another site. @throws RangeError if it would never fetch the URL */
export async function signExternalUrl({
  url,
  signingKeys,
  cdnUrl,
}: {
  /** URL of the media on the other site, percent-encoded. */
  readonly url: string;
  /** Value of `EXTERNAL_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Base URL of user content; omit to return a path. */
  readonly cdnUrl?: string | undefined;
}): Promise<string> {
  const fault = findFault(url);
  if (fault !== undefined) throw new RangeError(`url is ${quote(url)}; ${fault}.`);
  const target = `v2/${encodeBase64Url(encodeUtf8(url))}`;
  const signature = await sign(signingKeys, target, 'base64url');
  return `${parseBase('cdnUrl', cdnUrl)}/external/${signature}/${target}`;
}

/** Does not check host and port, whose rules are settings of the service. */
function findFault(text: string): string | undefined {
  if (/\p{Cc}/u.test(text)) return 'expected no control character';
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return 'expected a complete URL';
  }
  if (!/^https?:$/.test(url.protocol)) return 'expected http or https';
  if (url.username !== '' || url.password !== '') return 'expected no user name or password';
  return url.href.length > MAX_URL_BYTES ? `expected at most ${MAX_URL_BYTES} bytes` : undefined;
}

export type VerifiedExternal =
  | {
      readonly verdict: 'valid';
      /** URL of the other site; an empty string if the signed target is neither opaque nor segmented. */
      readonly url: string;
    }
  | { readonly verdict: 'malformed' | 'mismatch' };

/** Checks the signature of a URL of external media, but not whether the service may fetch them. */
export async function verifyExternalUrl({
  url,
  signingKeys,
  cdnUrl,
}: {
  readonly url: string;
  /** Value of `EXTERNAL_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Base URL of user content; omit if it has no path. */
  readonly cdnUrl?: string | undefined;
}): Promise<VerifiedExternal> {
  const { path } = splitUrl(url, cdnUrl);
  const [, signature = '', target = ''] = /^\/external\/([^/]*)\/(.*)$/s.exec(path) ?? [];
  if (target === '' || /[^\0-\xff]/.test(path)) return { verdict: 'malformed' };
  // Each character of a path is a byte.
  const bytes: Bytes = Uint8Array.from(target, (character) => character.charCodeAt(0));
  if (!(await verifies(signingKeys, bytes, signature, 'base64url'))) {
    return { verdict: 'mismatch' };
  }
  return { verdict: 'valid', url: readTarget(decodeUtf8(bytes) ?? '') };
}

function readTarget(target: string): string {
  if (target.startsWith('v2/')) {
    const bytes = decodeBase64Url(target.slice(3));
    return (bytes && decodeUtf8(bytes)) ?? '';
  }
  const segments = target.split('/');
  const query = /^%3F/i.test(segments[0] ?? '') ? decodeOnce(segments.shift() ?? '') : '';
  const [scheme = '', host = '', ...path] = segments;
  if (query === undefined || !/^[a-z]+$/i.test(scheme) || host === '') return '';
  return `${scheme}://${host}/${path.join('/')}${query}`;
}
