/** A second implementation of sections 8 to 10 of the contract, written only from their text. */

import { createHmac } from 'node:crypto';
import { parametersOf, splitTarget } from './contract-oracle.ts';
import { formatOf } from './response-checks.ts';

/** Accepted signing keys of the service under test. */
export const KEYS = [
  'an-example-key-of-thirty-two-bytes-or-more',
  'ein Schlüssel mit mehr Bytes als Zeichen',
] as const;

export function sign(text: string, encoding: 'hex' | 'base64url', key: string = KEYS[0]): string {
  return createHmac('sha256', key).update(text, 'latin1').digest(encoding);
}

const isSigned = (text: string, signature: string, encoding: 'hex' | 'base64url'): boolean =>
  KEYS.some((key) => sign(text, encoding, key) === signature);

/** Signed message of an attachment's URL; the key is in UTF-8. */
export const signedText = (ex: string, is: string, uc: string, key: string): string =>
  Buffer.from(`attachment-url-v1\n${ex}\n${is}\n${uc}\n${key}`).toString('latin1');

/** Section 9: expiry of an attachment's URL in Unix seconds, `Infinity` for a data export; `undefined` if it is invalid. */
export function endOf(target: string, key: string, nowSeconds: number): number | undefined {
  const [, query] = splitTarget(target);
  const words: Record<string, string> = {};
  for (const pair of query.split('&')) {
    const [[name, value] = ['', '']] = parametersOf(pair);
    if (!['ex', 'is', 'hm', 'uc'].includes(name)) continue;
    // Repeated, or encoded differently.
    if (name in words || pair !== `${name}=${value}`) return undefined;
    words[name] = value;
  }
  const { ex = '', is = '', hm = '', uc } = words;
  if (uc !== undefined && uc !== 'dp') return undefined;
  if (uc === 'dp' ? ex !== '0' : !/^[\da-f]{8}$/.test(ex)) return undefined;
  if (!/^[\da-f]{8}$/.test(is)) return undefined;
  if (!isSigned(signedText(uc === 'dp' ? '00000000' : ex, is, uc ?? '', key), hm, 'hex')) {
    return undefined;
  }
  if (uc === 'dp') return Number.POSITIVE_INFINITY;
  return Number.parseInt(ex, 16) > nowSeconds ? Number.parseInt(ex, 16) : undefined;
}

/** Section 8: the URL of a path below `/external/`, or its error; `undefined` for any other path. */
export function readExternalPath(target: string): URL | 'unauthorized' | 'forbidden' | undefined {
  const [path] = splitTarget(target);
  if (!path.startsWith('/external/')) return undefined;
  const [signature = '', ...rest] = path.slice('/external/'.length).split('/');
  if (rest.length === 0 || !isSigned(rest.join('/'), signature, 'base64url')) return 'unauthorized';
  return urlOf(rest) ?? 'forbidden';
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

/** Whether section 8 permits a URL, except for its host's addresses. */
function fetchable(text: string): URL | undefined {
  if (text.length > 8_192 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
  url.hash = '';
  return isWeb && url.username === '' && url.password === '' ? url : undefined;
}

interface Upload {
  readonly target: string;
  /** Declared type. */
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly body: Buffer;
  /** Declared framing of the body. */
  readonly framing: 'length' | 'chunks' | 'none';
}

/** Whether a target is an upload's. */
export const isRelayPath = (target: string): boolean =>
  /^\/v1\/relay\/./s.test(splitTarget(target)[0]);

/** Section 10, for a directory: the key of an accepted upload, or its error. */
export function expectedUpload(
  { target, contentType, contentEncoding = '', body, framing }: Upload,
  maxBytes: number,
  isThere: (key: string) => boolean,
  nowSeconds: number,
): string | readonly [status: number, code: string] {
  const [path, query] = splitTarget(target);
  const [, payload = '', signature = ''] = /^t=([^.]*)\.(.*)$/.exec(query) ?? [];
  if (!isSigned(payload, signature, 'base64url')) return [401, 'UNAUTHORIZED'];
  const terms: Terms = JSON.parse(Buffer.from(payload, 'base64url').toString());
  if (terms.e <= nowSeconds) return [401, 'UNAUTHORIZED'];
  const key = decodeURIComponent(path.slice('/v1/relay/'.length));
  if (terms.k !== key || terms.u !== undefined) return [403, 'ACCESS_DENIED'];
  if (!/^(identity)?$/i.test(contentEncoding)) return [415, 'UNSUPPORTED_MEDIA_TYPE'];
  if (framing === 'none') return [411, 'LENGTH_REQUIRED'];
  const isTooLarge = body.length > Math.min(maxBytes, terms.mb ?? maxBytes);
  if (isTooLarge && framing === 'length') return [413, 'PAYLOAD_TOO_LARGE'];
  if (isThere(key) && terms.o !== true) return [409, 'MEDIA_EXISTS'];
  if (isDeclaredPicture(terms.ct ?? contentType ?? '') && formatOf(body) === 'unknown') {
    return [415, 'UNSUPPORTED_MEDIA_TYPE'];
  }
  if (isTooLarge) return [413, 'PAYLOAD_TOO_LARGE'];
  return key;
}

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

export function capabilityOf(json: string, key: string = KEYS[0]): string {
  const payload = Buffer.from(json).toString('base64url');
  return `${payload}.${sign(payload, 'base64url', key)}`;
}

function isDeclaredPicture(type: string): boolean {
  const [name = ''] = type.toLowerCase().split(';');
  return /^image\/(a?png|jpeg|webp|gif|avif|hei[cf])$/.test(name.trim());
}
