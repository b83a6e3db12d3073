import { MediaError, type RequestFault } from './errors.ts';
import {
  formatOfExtension,
  isLossless,
  type OutputFormat,
  outputFormats,
  type Quality,
} from './image-formats.ts';
import { type MediaPath, parsePath } from './media-path.ts';
import { type MediaQuery, parseQuery } from './media-query.ts';
import { originKeyOf } from './origin-key.ts';
import { type ResourceName, resourceRows } from './resources.ts';

/**
 * A request in canonical form (contract §2): two URLs that must give the same bytes give equal values
 * here, and so one `resultKey`.
 */
export interface MediaRequest {
  readonly resource: ResourceName;
  readonly originKey: string;
  /** Name to offer for a download; attachments alone have one. */
  readonly filename: string | undefined;
  /** Bounds of the result in pixels; with both, it is cropped to their aspect ratio. */
  readonly widthPx: number | undefined;
  readonly heightPx: number | undefined;
  /** `undefined`: the original's own format. */
  readonly format: OutputFormat | undefined;
  readonly quality: Quality;
  /** Whether an animation is kept where original and format both have one. */
  readonly isAnimated: boolean;
  /** The original is wanted byte for byte, whatever it is (contract §2, external). */
  readonly isPassthrough: boolean;
}

/** What a request target asks for. */
export type RequestTarget =
  | { readonly kind: 'media'; readonly request: MediaRequest }
  | { readonly kind: 'default avatar'; readonly index: string };

/**
 * Reads a request target into a canonical request.
 *
 * @param target path and query as they came in the request line
 * @throws MediaError `NOT_FOUND` if the path is no template, `INVALID_FORM_BODY` with all faults of
 *   path and query together
 */
export function parseTarget(target: string): RequestTarget {
  const [rawPath, rawQuery] = splitTarget(target);
  const parsedPath = parsePath(rawPath);
  if (parsedPath.kind === 'no template') throw new MediaError('NOT_FOUND');

  const faults: RequestFault[] = parsedPath.kind === 'invalid' ? [...parsedPath.faults] : [];
  const resource = parsedPath.kind === 'invalid' ? parsedPath.resource : parsedPath.path.resource;
  const queryKind = resourceRows[resource].query;
  const parsedQuery = parseQuery(queryKind, rawQuery);
  if (parsedQuery.kind === 'invalid') faults.push(...parsedQuery.faults);
  if (parsedPath.kind === 'invalid' || parsedQuery.kind === 'invalid') {
    throw new MediaError('INVALID_FORM_BODY', { faults });
  }

  const { path } = parsedPath;
  return queryKind === 'none'
    ? { kind: 'default avatar', index: path.values.index ?? '' }
    : { kind: 'media', request: createRequest(path, parsedQuery.query) };
}

/** Whether the path of a request target is one of the contract's templates, its values right or not. */
export function isKnownPath(target: string): boolean {
  return parsePath(splitTarget(target)[0]).kind !== 'no template';
}

/** The path of a request target, as it came. */
export function pathOfTarget(target: string): string {
  return splitTarget(target)[0];
}

/** Joins path and query into the canonical request; flags without effect are set to one value. */
function createRequest(path: MediaPath, query: MediaQuery): MediaRequest {
  const extension =
    resourceRows[path.resource].query === 'external' ? query.format : path.extension;
  const format = extension === undefined ? undefined : formatOfExtension(extension);
  const isAttachment = path.resource === 'attachment';
  const isPassthrough =
    isAttachment &&
    format === undefined &&
    query.widthPx === undefined &&
    query.heightPx === undefined &&
    query.quality === 'lossless';
  return {
    resource: path.resource,
    originKey: originKeyOf(path) ?? '',
    filename: isAttachment ? path.values.filename : undefined,
    widthPx: query.widthPx,
    heightPx: query.heightPx,
    format,
    quality: canonicalQuality(format, query.quality),
    isAnimated: canonicalAnimated(format, query.animated, isAttachment) && !isPassthrough,
    isPassthrough,
  };
}

/** Cache key of the canonical request: the origin key and every value spelled out, in one order. */
export function resultKey(request: MediaRequest): string {
  const { originKey, widthPx, heightPx, format, quality, isAnimated } = request;
  // A file name may hold a question mark; encoded segments keep key and query apart.
  const key = encodeOriginKey(originKey);
  const size = `width=${widthPx ?? ''}&height=${heightPx ?? ''}`;
  return `${key}?${size}&format=${format ?? ''}&quality=${quality}&animated=${isAnimated}`;
}

/** An origin key, or the beginning of one, as it stands at the beginning of a `resultKey`. */
export function encodeOriginKey(originKey: string): string {
  return originKey.split('/').map(encodeURIComponent).join('/');
}

/** What a `resultKey` begins with: the encoded origin key. */
export function encodedOriginKeyOf(key: string): string {
  return key.slice(0, key.indexOf('?'));
}

/** Absolute form (RFC 9112 §3.2.2) loses scheme and authority; a fragment is never part of a target. */
function splitTarget(target: string): [path: string, query: string] {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const local = target.slice(origin.length).split('#', 1)[0] ?? '';
  const mark = local.indexOf('?');
  return mark < 0 ? [local, ''] : [local.slice(0, mark), local.slice(mark + 1)];
}

function canonicalQuality(format: OutputFormat | undefined, quality: Quality): Quality {
  return format !== undefined && isLossless(format, quality) ? 'lossless' : quality;
}

function canonicalAnimated(
  format: OutputFormat | undefined,
  animated: boolean,
  isAttachment: boolean,
): boolean {
  if (format === undefined) return animated;
  if (!outputFormats[format].canAnimate) return false;
  return animated || (outputFormats[format].animatesUnasked && !isAttachment);
}
