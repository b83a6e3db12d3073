import { hash as hashOnce } from 'node:crypto';
import type { HighFor, MediaRequest } from './media-request.ts';

/** Values of `quality` in cache keys, if the quality depends on the original. */
const OPEN_QUALITIES: Readonly<Record<HighFor, string>> = {
  videos: '',
  'lossy originals': 'by-original',
};

/** Fields of a request that determine its result together with the original. */
type ResultField = Exclude<
  keyof MediaRequest,
  'resource' | 'originKey' | 'url' | 'filename' | 'isPassthrough'
>;

/** Parameters of a result key, in the order of stored results. The compiler requires a row for each field. */
const keyParameters = {
  widthPx: ({ widthPx }) => `width=${widthPx ?? ''}`,
  heightPx: ({ heightPx }) => `height=${heightPx ?? ''}`,
  format: ({ format }) => `format=${format ?? ''}`,
  quality: ({ quality, highFor }) =>
    `quality=${highFor === undefined ? quality : OPEN_QUALITIES[highFor]}`,
  highFor: undefined, // part of the quality
  isAnimated: ({ isAnimated }) => `animated=${isAnimated}`,
} satisfies Record<ResultField, ((request: MediaRequest) => string) | undefined>;

/** Returns the cache key of a request: the origin key and all parameters, in a fixed order. */
export function resultKey(request: MediaRequest): string {
  const parameters = Object.values(keyParameters).flatMap((format) => format?.(request) ?? []);
  // Encoded, since a file name may contain a question mark.
  return `${encodeOriginKey(request.originKey)}?${parameters.join('&')}`;
}

/** Encodes an origin key or its prefix like `resultKey`. */
export function encodeOriginKey(originKey: string): string {
  return originKey.split('/').map(encodeURIComponent).join('/');
}

export function encodedOriginKeyOf(cacheKey: string): string {
  return cacheKey.slice(0, cacheKey.indexOf('?'));
}

export interface ResultAddress {
  readonly originKey: string;
  readonly cacheKey: string;
  /** Identity of the rendered version of the original. */
  readonly originalEtag: string;
  readonly release: string;
}

/** Hexadecimal digits of each part of a name: 64 bits suffice for the renderings of one original. */
const DIGITS = 16;

/**
 * Returns the path of a rendering in a store: a directory named by the origin key, then digests of the request and of the
 * original's and pipeline's versions. One prefix selects all renderings of a user, an original or a request.
 */
export function resultPath({ originKey, cacheKey, originalEtag, release }: ResultAddress): string {
  return `${resultPathPrefix(originKey, cacheKey)}${hash(JSON.stringify([originalEtag, release]))}`;
}

/** Returns the common prefix of the paths of one request, for all versions of its original. */
export function resultPathPrefix(originKey: string, cacheKey: string): string {
  return `${originKey}/${hash(cacheKey)}-`;
}

/** Whether a path has the format of `resultPath`, in any directory. */
export function isResultPath(path: string): boolean {
  return /\/[\da-f]{16}-[\da-f]{16}$/.test(path);
}

function hash(text: string): string {
  return hashOnce('sha256', text, 'hex').slice(0, DIGITS);
}

/** Validators of a response, which are known before it is rendered. */
export interface Validators {
  /** Strong entity tag with its quotes; `undefined` if another site returns none. */
  readonly etag: string | undefined;
  /** Modification time of the original; `undefined` if the origin returns none. */
  readonly lastModified: Date | undefined;
}

/** Returns the validators of a response (contract §4). @param cacheKey `resultKey` of the request */
export function validatorsOf(
  { etag, lastModified }: { readonly etag: string; readonly lastModified: Date | undefined },
  cacheKey: string,
  release: string,
): Validators & { readonly etag: string } {
  const digest = hashOnce('sha256', JSON.stringify([etag, cacheKey, release]), 'base64url');
  // 132 of 256 bits avoid random collisions, and keep the header short.
  return { etag: `"${digest.slice(0, 22)}"`, lastModified };
}
