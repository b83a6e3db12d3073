/** Sections 8 to 10 of the contract once more, from their text alone: what is signed, and what a signature permits. */

import { createHmac } from 'node:crypto';
import { decodeSegment, isPathValue, parametersOf, rows, splitTarget } from './contract-oracle.ts';

/** The keys of the service under test: what either has signed is accepted. */
export const KEYS = [
  'an-example-key-of-thirty-two-bytes-or-more',
  'ein Schlüssel mit mehr Bytes als Zeichen',
] as const;

/** HMAC-SHA256 of a text. */
export function sign(text: string, encoding: 'hex' | 'base64url', key: string = KEYS[0]): string {
  return createHmac('sha256', key).update(text, 'latin1').digest(encoding);
}

const isSigned = (text: string, signature: string, encoding: 'hex' | 'base64url'): boolean =>
  KEYS.some((key) => sign(text, encoding, key) === signature);

/** What is signed of an attachment's URL: its key in UTF-8, as `sign` takes bytes. */
export const signedText = (ex: string, is: string, uc: string, key: string): string =>
  Buffer.from(`attachment-url-v1\n${ex}\n${is}\n${uc}\n${key}`).toString('latin1');

/**
 * Section 9: until when the URL of an attachment holds, in seconds since 1970, `Infinity` of a data export; `undefined`
 * where it is refused.
 */
export function endOf(target: string, key: string, nowSeconds: number): number | undefined {
  const [, query] = splitTarget(target);
  const words: Record<string, string> = {};
  for (const pair of query.split('&')) {
    const [[name, value] = ['', '']] = parametersOf(pair);
    if (!['ex', 'is', 'hm', 'uc'].includes(name)) continue;
    // Given twice, or spelled otherwise.
    if (name in words || pair !== `${name}=${value}`) return undefined;
    words[name] = value;
  }
  const { ex = '', is = '', hm = '', uc } = words;
  const isHex = (text: string, digits: number): boolean =>
    text.length === digits && [...text].every((digit) => '0123456789abcdef'.includes(digit));
  if (uc !== undefined && uc !== 'dp') return undefined;
  if (uc === 'dp' ? ex !== '0' : !isHex(ex, 8)) return undefined;
  if (!isHex(is, 8) || !isHex(hm, 64)) return undefined;
  if (!isSigned(signedText(uc === 'dp' ? '00000000' : ex, is, uc ?? '', key), hm, 'hex')) {
    return undefined;
  }
  if (uc === 'dp') return Number.POSITIVE_INFINITY;
  return Number.parseInt(ex, 16) > nowSeconds ? Number.parseInt(ex, 16) : undefined;
}

/** Section 8: the URL that a path of external media names; `undefined` of one that may not be fetched. */
export interface ExternalPath {
  readonly isSigned: boolean;
  readonly url: URL | undefined;
}

/** Takes a path below `/external/` apart, as its bytes are; `undefined` for any other. */
export function readExternalPath(target: string): ExternalPath | undefined {
  const [path] = splitTarget(target);
  if (!path.startsWith('/external/')) return undefined;
  const [signature = '', ...rest] = path.slice('/external/'.length).split('/');
  const signed = rest.join('/');
  if (rest.length === 0 || !isSigned(signed, signature, 'base64url')) {
    return { isSigned: false, url: undefined };
  }
  return { isSigned: true, url: urlOf(rest) };
}

function urlOf(segments: readonly string[]): URL | undefined {
  if (segments[0] === 'v2') {
    const [, encoded = '', ...more] = segments;
    return more.length > 0 ? undefined : fetchable(Buffer.from(encoded, 'base64url').toString());
  }
  const [first = '', ...others] = segments;
  const hasQuery = first.startsWith('%3F');
  const query = hasQuery ? decodeURIComponent(first) : '';
  const [scheme, host, ...path] = hasQuery ? others : segments;
  return fetchable(`${scheme}://${host}/${path.join('/')}${query}`);
}

/** What section 8 says of a URL, but for its host, which is a matter of the network. */
function fetchable(text: string): URL | undefined {
  if (text.length > 8_192 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
  url.hash = '';
  return isWeb && url.username === '' && url.password === '' ? url : undefined;
}

/** An upload, as far as it is judged. */
export interface Upload {
  readonly target: string;
  /** What the request calls itself. */
  readonly contentType: string | undefined;
  readonly body: Buffer;
  /** Whether its length stands in its head. */
  readonly isLengthTold: boolean;
}

/** What becomes of an upload: it is stored under its key, or refused. */
export type UploadVerdict =
  | { readonly kind: 'stored'; readonly key: string }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string };

const refused = (status: number, code: string): UploadVerdict => {
  return { kind: 'refused', status, code };
};

/** Whether the path of a target is one of uploads, and which key it names. */
export function readRelayPath(target: string): { readonly key: string | undefined } | undefined {
  const [path] = splitTarget(target);
  if (!path.startsWith('/v1/relay/') || path === '/v1/relay/') return undefined;
  const segments = path.slice('/v1/relay/'.length).split('/').map(decodeSegment);
  // A slash that was encoded is none of the key's own.
  const isWhole = segments.every((segment) => segment !== undefined && !segment.includes('/'));
  return { key: isWhole ? segments.join('/') : undefined };
}

/** Section 10, for storage in a folder: what becomes of an upload. */
export function judgeUpload(
  { target, contentType, body, isLengthTold }: Upload,
  maxBytes: number,
  isThere: (key: string) => boolean,
  nowSeconds: number,
): UploadVerdict {
  const given = parametersOf(splitTarget(target)[1]);
  const all = given.flatMap(([name, value]) => (name === 't' ? [value] : []));
  const terms = all.length === 1 ? readCapability(all[0] ?? '', nowSeconds) : undefined;
  if (terms === undefined) return refused(401, 'UNAUTHORIZED');
  const key = readRelayPath(target)?.key;
  if (key === undefined) return refused(400, 'INVALID_FORM_BODY');
  const namesPart = given.some(([name]) => name === 'uploadId' || name === 'partNumber');
  if (terms.k !== key || terms.u !== undefined || namesPart) return refused(403, 'ACCESS_DENIED');
  if (!isOriginKey(key)) return refused(400, 'INVALID_FORM_BODY');
  const isTooLarge = body.length > Math.min(maxBytes, terms.mb ?? maxBytes);
  if (isTooLarge && isLengthTold) return refused(413, 'PAYLOAD_TOO_LARGE');
  if (isThere(key) && terms.o !== true) return refused(409, 'MEDIA_EXISTS');
  if (isSaidToBePicture(terms.ct ?? contentType ?? '') && !isPicture(body)) {
    return refused(415, 'UNSUPPORTED_MEDIA_TYPE');
  }
  if (isTooLarge) return refused(413, 'PAYLOAD_TOO_LARGE');
  return { kind: 'stored', key };
}

/** What a capability permits. */
export interface Terms {
  readonly b?: string;
  readonly k: string;
  readonly m: 'put';
  readonly ct?: string;
  readonly mb?: number;
  readonly e: number;
  readonly u?: string;
  readonly p?: number;
  readonly o?: boolean;
}

/** Signs terms, as they are written. */
export function capabilityOf(json: string, key: string = KEYS[0]): string {
  const payload = Buffer.from(json).toString('base64url');
  return `${payload}.${sign(payload, 'base64url', key)}`;
}

function readCapability(text: string, nowSeconds: number): Terms | undefined {
  const [payload = '', signature = '', ...more] = text.split('.');
  if (text.length > 16_384 || more.length > 0) return undefined;
  if (!isSigned(payload, signature, 'base64url')) return undefined;
  const json = Buffer.from(payload, 'base64url').toString();
  if (Buffer.from(json).toString('base64url') !== payload) return undefined; // not canonical
  let terms: Record<keyof Terms, unknown>;
  try {
    terms = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof terms !== 'object' || terms === null) return undefined;
  if (JSON.stringify(terms) !== json) return undefined; // a field twice: no other spelling is drawn
  const { b, k, m, ct, mb, e, u, p, o } = terms;
  const isTyped =
    [b, ct, u].every((each) => each === undefined || typeof each === 'string') &&
    [mb, p].every(
      (each) => each === undefined || (Number.isSafeInteger(each) && Number(each) >= 0),
    ) &&
    typeof k === 'string' &&
    m === 'put' &&
    Number.isSafeInteger(e) &&
    (o === undefined || typeof o === 'boolean') &&
    (u === undefined) === (p === undefined);
  return isTyped && Number(e) > nowSeconds ? (terms as Terms) : undefined;
}

function isOriginKey(key: string): boolean {
  const parts = key.split('/');
  return rows.some(({ originKey }) => {
    const pattern = originKey.split('/');
    if (originKey === '' || pattern.length !== parts.length) return false;
    return pattern.every((each, index) => {
      const part = parts[index] ?? '';
      if (!each.startsWith('{')) return part === each;
      // No stored key has the mark of an animation.
      if (each.endsWith('hash}') && part.startsWith('a_')) return false;
      return isPathValue(each.slice(1, -1), part);
    });
  });
}

function isSaidToBePicture(type: string): boolean {
  const [name = ''] = type.toLowerCase().split(';');
  const kinds = ['png', 'apng', 'jpeg', 'webp', 'gif', 'avif', 'heic', 'heif'];
  return kinds.some((kind) => name.trim() === `image/${kind}`);
}

/** By the first bytes of what is drawn here. */
function isPicture(body: Buffer): boolean {
  const head = body.subarray(0, 12).toString('latin1');
  return ['\x89PNG', '\xff\xd8\xff', 'GIF8', 'RIFF'].some((magic) => head.startsWith(magic));
}
