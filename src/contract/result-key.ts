import type { HighFor, MediaRequest } from './media-request.ts';

/** Names of the qualities that depend on the original, in cache keys. */
const OPEN_QUALITIES: Readonly<Record<HighFor, string>> = {
  videos: '',
  'lossy originals': 'by-original',
};

/** Fields of a request, besides the original, that its result depends on. */
type ResultField = Exclude<
  keyof MediaRequest,
  'resource' | 'originKey' | 'url' | 'filename' | 'isPassthrough'
>;

/** Parameters of a result key, in the order that stored results have. Each field of a request needs a row. */
const keyParameters = {
  widthPx: ({ widthPx }) => `width=${widthPx ?? ''}`,
  heightPx: ({ heightPx }) => `height=${heightPx ?? ''}`,
  format: ({ format }) => `format=${format ?? ''}`,
  quality: ({ quality, highFor }) =>
    `quality=${highFor === undefined ? quality : OPEN_QUALITIES[highFor]}`,
  highFor: undefined, // part of the quality
  isAnimated: ({ isAnimated }) => `animated=${isAnimated}`,
} satisfies Record<ResultField, ((request: MediaRequest) => string) | undefined>;

/** Returns the cache key of the canonical request: the origin key and every value in a fixed order. */
export function resultKey(request: MediaRequest): string {
  const parameters = Object.values(keyParameters).flatMap((format) => format?.(request) ?? []);
  // A file name may contain a question mark; encoded segments keep key and query apart.
  return `${encodeOriginKey(request.originKey)}?${parameters.join('&')}`;
}

/** Encodes an origin key, or a prefix of one, as `resultKey` writes it. */
export function encodeOriginKey(originKey: string): string {
  return originKey.split('/').map(encodeURIComponent).join('/');
}

/** Returns the encoded origin key with which a `resultKey` begins. */
export function encodedOriginKeyOf(key: string): string {
  return key.slice(0, key.indexOf('?'));
}
