import { MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf, findOwnTarget, type PublicUrl, readUrl } from './external-url.ts';
import {
  type Extension,
  formatOfExtension,
  isLossless,
  type OutputFormat,
  outputFormats,
  type Quality,
} from './image-formats.ts';
import { toStrict } from './leniency.ts';
import { type MediaPath, originKeyOf, parsePath } from './media-path.ts';
import { type MediaQuery, parseQuery } from './media-query.ts';
import { contractResources, type ResourceName, type Resources, resourceRows } from './resources.ts';
import { externalKeyOf, isExternalPath } from './signing/external-path.ts';

/** Videos (contract §12), or all originals whose pixels have been encoded with loss, videos included (contract §14). */
export type HighFor = 'videos' | 'lossy originals';

/** Names of the qualities that depend on the original, in cache keys. */
const OPEN_QUALITIES: Readonly<Record<HighFor, string>> = {
  videos: '',
  'lossy originals': 'by-original',
};

/** A request in canonical form (contract §2): URLs that must give equal bytes have one `resultKey`. */
export interface MediaRequest extends Pick<MediaQuery, 'widthPx' | 'heightPx' | 'quality'> {
  readonly resource: ResourceName;
  readonly originKey: string;
  /** For external media: the URL in canonical form, or other signed text, which is refused when it would be fetched. */
  readonly url: string | undefined;
  /** File name for a download; only attachments and files have one. */
  readonly filename: string | undefined;
  /** `undefined`: the original's own format. */
  readonly format: OutputFormat | undefined;
  /** Originals that are rendered with `high`, since the request names no quality; all others have `quality`. */
  readonly highFor?: HighFor;
  /** Whether the result stays animated if both the original and the format support animation. */
  readonly isAnimated: boolean;
  /** Whether the response is the original byte for byte, whatever its format (contract §2, external). */
  readonly isPassthrough: boolean;
}

export type RequestTarget =
  | {
      readonly kind: 'media';
      readonly request: MediaRequest;
      /** Whether a browser is to save the body, whatever its type. */
      readonly isDownload: boolean;
    }
  | { readonly kind: 'default avatar'; readonly index: string };

/** Settings by which request targets are read. */
export interface TargetReading {
  /** Those of contract §1 by default. */
  readonly resources?: Resources;
  /**
   * Reads the URL text from the path of external media; returns `undefined` if its signature is missing or wrong. Without
   * this function, external media are disabled.
   */
  readonly readExternal?: ((rawPath: string) => string | undefined) | undefined;
  readonly publicUrls?: readonly PublicUrl[];
}

/**
 * Returns the target that a request is served as: the one that an own URL has here, if that is asked for as external
 * media (contract §14); else the request's own.
 */
export function resolveTarget(target: string, reading: TargetReading): string {
  if (reading.publicUrls?.[0] === undefined) return target;
  const [rawPath, rawQuery] = splitTarget(target);
  const url = isExternalPath(rawPath) ? reading.readExternal?.(rawPath) : undefined;
  // A signed target that is no URL has an empty text.
  return (url ? resolveOwnUrl(url, rawQuery, reading) : undefined) ?? target;
}

/**
 * Returns the target that an own URL has here. Nothing of the target is judged but its form, and the signature if it is
 * of external media, whose URL is not another own one unless that is of a stored original.
 *
 * @param outerQuery stands in for the query that the URL does not have
 * @returns `undefined` if the URL is not ours, or not one of media
 */
export function resolveOwnUrl(
  text: string,
  outerQuery: string,
  reading: TargetReading,
  mayUnwrap = true,
): string | undefined {
  const { readExternal, publicUrls = [] } = reading;
  const [path, query] = splitTarget(findOwnTarget(text, publicUrls) ?? '');
  const rawQuery = query || outerQuery;
  const target = rawQuery === '' ? path : `${path}?${rawQuery}`;
  if (!isExternalPath(path)) return isKnownPath(target, reading) ? target : undefined;
  const url = mayUnwrap ? readExternal?.(path) : undefined;
  if (url === undefined) return undefined;
  const isOwn = findOwnTarget(url, publicUrls) !== undefined;
  return isOwn ? resolveOwnUrl(url, rawQuery, reading, false) : target;
}

/**
 * Parses a request target into a canonical request.
 *
 * @param target path and query as they came in the request line; `resolveTarget` comes first
 * @throws MediaError `UNAUTHORIZED` if the path of external media is not signed, before any other error; `NOT_FOUND` if
 *   the path fits no template; `INVALID_FORM_BODY` with all faults of path and query together
 */
export function parseTarget(target: string, reading: TargetReading = {}): RequestTarget {
  const { readExternal, resources = contractResources } = reading;
  const [sentPath, sentQuery] = splitTarget(target);
  const { rawPath, rawQuery, isDownload } = resources.isLenient
    ? toStrict(sentPath, sentQuery, resources)
    : { rawPath: sentPath, rawQuery: sentQuery, isDownload: false };
  if (readExternal !== undefined && isExternalPath(rawPath)) {
    const url = readExternal(rawPath);
    if (url === undefined) throw new MediaError('UNAUTHORIZED');
    return { kind: 'media', request: parseExternalRequest(url, rawQuery, resources), isDownload };
  }
  const parsedPath = parsePath(rawPath, resources);
  if (parsedPath.kind === 'no template') throw new MediaError('NOT_FOUND');

  const faults: RequestFault[] = parsedPath.kind === 'invalid' ? [...parsedPath.faults] : [];
  const resource = parsedPath.kind === 'invalid' ? parsedPath.resource : parsedPath.path.resource;
  const queryKind = resourceRows[resource].query;
  const parsedQuery = parseQuery(queryKind, rawQuery, resources.isLenient);
  if (parsedQuery.kind === 'invalid') faults.push(...parsedQuery.faults);
  if (parsedPath.kind === 'invalid' || parsedQuery.kind === 'invalid') {
    throw new MediaError('INVALID_FORM_BODY', { faults });
  }

  const { path } = parsedPath;
  return queryKind === 'none'
    ? { kind: 'default avatar', index: path.values.index ?? '' }
    : {
        kind: 'media',
        request: createStoredRequest(path, parsedQuery.query, rawQuery, resources),
        isDownload,
      };
}

function parseExternalRequest(
  text: string,
  rawQuery: string,
  { isLenient }: Resources,
): MediaRequest {
  const resource = 'external media';
  const parsedQuery = parseQuery(resourceRows[resource].query, rawQuery, isLenient);
  if (parsedQuery.kind === 'invalid') {
    throw new MediaError('INVALID_FORM_BODY', { faults: parsedQuery.faults });
  }
  const { query } = parsedQuery;
  const url = canonicalUrlOf(text) ?? text;
  const subject = { resource, originKey: externalKeyOf(url), url, filename: undefined } as const;
  const name = readUrl(url)?.pathname;
  return withOpenQuality(createRequest(subject, undefined, query), name, rawQuery, isLenient);
}

/** Whether the path of a request target fits a template of the contract, even with invalid values. */
export function isKnownPath(target: string, reading: TargetReading = {}): boolean {
  const { readExternal, resources } = reading;
  const [rawPath] = splitTarget(target);
  if (readExternal !== undefined && isExternalPath(rawPath)) return true;
  return parsePath(rawPath, resources).kind !== 'no template';
}

function createStoredRequest(
  path: MediaPath,
  query: MediaQuery,
  rawQuery: string,
  { isLenient }: Resources,
): MediaRequest {
  const { resource } = path;
  const subject = {
    resource,
    originKey: originKeyOf(path) ?? '',
    url: undefined,
    filename: filenameOf(path),
  };
  const request = createRequest(subject, path.extension, query);
  return withOpenQuality(request, subject.filename, rawQuery, isLenient);
}

/**
 * Leaves a quality that is absent to the original: `high` for a video with the name of one (contract §12), and in a
 * lenient request for every original that has been encoded with loss (contract §14).
 */
function withOpenQuality(
  request: MediaRequest,
  name: string | undefined,
  rawQuery: string,
  isLenient: boolean,
): MediaRequest {
  const { resource, format, isPassthrough } = request;
  if (resourceRows[resource].query !== 'external' || isPassthrough) return request;
  const hasQuality = new URLSearchParams(`?${rawQuery}`).has('quality');
  if (hasQuality || canonicalQuality(format, 'high') === request.quality) return request;
  if (isLenient) return { ...request, highFor: 'lossy originals' };
  return format !== undefined && isVideoName(name) ? { ...request, highFor: 'videos' } : request;
}

/** Returns the name of the original, if it has one; a theme is part of a page, and is never saved. */
function filenameOf({ resource, values }: MediaPath): string | undefined {
  if (resource === 'entrance sound') return `${values.sound_name}.${values.ext}`;
  return resource === 'attachment' ? values.filename : undefined;
}

type Subject = Pick<MediaRequest, 'resource' | 'originKey' | 'url' | 'filename'>;

/** Builds the canonical request from path and query; flags without effect are set to one value. */
function createRequest(
  subject: Subject,
  pathExtension: Extension | undefined,
  query: MediaQuery,
): MediaRequest {
  const { query: kind } = resourceRows[subject.resource];
  const isAsset = kind !== 'external' && kind !== 'file';
  const extension = isAsset ? pathExtension : query.format;
  const format = extension === undefined ? undefined : formatOfExtension(extension);
  const isPassthrough =
    !isAsset &&
    format === undefined &&
    query.widthPx === undefined &&
    query.heightPx === undefined &&
    (query.quality === 'lossless' || kind === 'file');
  return {
    ...subject,
    widthPx: query.widthPx,
    heightPx: query.heightPx,
    format,
    quality: canonicalQuality(format, query.quality),
    isAnimated: canonicalAnimated(format, query.animated, isAsset) && !isPassthrough,
    isPassthrough,
  };
}

/** Returns the cache key of the canonical request: the origin key and every value in a fixed order. */
export function resultKey(request: MediaRequest): string {
  const { originKey, widthPx, heightPx, format, quality, highFor, isAnimated } = request;
  // A file name may hold a question mark; encoded segments keep key and query apart.
  const key = encodeOriginKey(originKey);
  const size = `width=${widthPx ?? ''}&height=${heightPx ?? ''}`;
  const named = highFor === undefined ? quality : OPEN_QUALITIES[highFor];
  return `${key}?${size}&format=${format ?? ''}&quality=${named}&animated=${isAnimated}`;
}

/** Whether a name, or a key that ends with it, is that of a video (contract §12). Bytes decide whether it is one. */
export function isVideoName(name = ''): boolean {
  return /\.(?:mp4|m4v|mov|webm|mkv)$/i.test(name);
}

/** Returns the request for the original of another one, byte for byte. */
export function unchangedOf(request: MediaRequest): MediaRequest {
  return { ...request, quality: 'lossless', isAnimated: false, isPassthrough: true };
}

/** Encodes an origin key, or a prefix of one, as `resultKey` writes it. */
export function encodeOriginKey(originKey: string): string {
  return originKey.split('/').map(encodeURIComponent).join('/');
}

/** Returns the encoded origin key with which a `resultKey` begins. */
export function encodedOriginKeyOf(key: string): string {
  return key.slice(0, key.indexOf('?'));
}

/**
 * Returns path and query of a request target, as they came, without the question mark between them. An absolute form
 * (RFC 9112 §3.2.2) loses scheme and authority; a fragment is never part of a target.
 */
export function splitTarget(target: string): [path: string, query: string] {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const local = target.slice(origin.length).split('#', 1)[0] ?? '';
  const mark = local.indexOf('?');
  return mark < 0 ? [local, ''] : [local.slice(0, mark), local.slice(mark + 1)];
}

/** Returns one name for all qualities that lose nothing in a format. */
function canonicalQuality(format: OutputFormat | undefined, quality: Quality): Quality {
  return format !== undefined && isLossless(format, quality) ? 'lossless' : quality;
}

function canonicalAnimated(
  format: OutputFormat | undefined,
  animated: boolean,
  isAsset: boolean,
): boolean {
  if (format === undefined) return animated;
  if (!outputFormats[format].canAnimate) return false;
  return animated || (outputFormats[format].animatesUnasked && isAsset);
}
