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

/** Maximum length of a URL in bytes (contract §8). */
const MAX_URL_BYTES = 8_192;

/**
 * Returns the URL under which the service shows media of another site.
 *
 * @throws RangeError if the service would never fetch the URL
 */
export async function signExternalUrl({
  url,
  signingKeys,
  cdnUrl,
}: {
  /** URL of the other site, with its escapes. */
  readonly url: string;
  /** Keys of `EXTERNAL_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Public address of user content; omit for a path. */
  readonly cdnUrl?: string | undefined;
}): Promise<string> {
  const fault = findFault(url);
  if (fault !== undefined) throw new RangeError(`url is ${quote(url)}; ${fault}.`);
  const target = `v2/${encodeBase64Url(encodeUtf8(url))}`;
  const signature = await sign(signingKeys, target, 'base64url');
  return `${parseBase('cdnUrl', cdnUrl)}/external/${signature}/${target}`;
}

/** Whether hosts and ports may be fetched is a setting of the service. */
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

/** Result of checking a URL of external media. */
export type VerifiedExternal =
  | {
      readonly verdict: 'valid';
      /** URL of the other site; an empty text if the signed target has neither form. */
      readonly url: string;
    }
  | { readonly verdict: 'malformed' | 'mismatch' };

/** Checks a URL of external media as the service does; whether the service may fetch it is another question. */
export async function verifyExternalUrl({
  url,
  signingKeys,
  cdnUrl,
}: {
  readonly url: string;
  /** Keys of `EXTERNAL_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Public address of user content, if it has a path. */
  readonly cdnUrl?: string | undefined;
}): Promise<VerifiedExternal> {
  const { path } = splitUrl(url, cdnUrl);
  const [, signature = '', target = ''] = /^\/external\/([^/]*)\/(.*)$/s.exec(path) ?? [];
  if (target === '' || /[^\0-\xff]/.test(path)) return { verdict: 'malformed' };
  // A path has one character for each byte.
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
