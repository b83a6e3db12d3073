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
import { type StrictTarget, toStrict } from './leniency.ts';
import { type MediaPath, originKeyOf, parsePath } from './media-path.ts';
import { type MediaQuery, parseQuery } from './media-query.ts';
import { contractResources, type ResourceName, type Resources, resourceRows } from './resources.ts';
import { externalKeyOf, isExternalPath } from './signing/external-path.ts';

/** Videos (contract §12), or all originals whose pixels have been encoded with loss, videos included (contract §14). */
export type HighFor = 'videos' | 'lossy originals';

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

/** A request target as the service reads it. */
export type RequestTarget = (
  | {
      readonly kind: 'media';
      readonly request: MediaRequest;
      /** Whether a browser is to save the body, whatever its type. */
      readonly isDownload: boolean;
    }
  | { readonly kind: 'default avatar'; readonly index: string }
  | {
      readonly kind: 'invalid';
      /** `UNAUTHORIZED` if the path of external media is not signed; else `INVALID_FORM_BODY` with all faults. */
      readonly error: MediaError;
    }
  | { readonly kind: 'unknown' }
) & {
  /** Path and query that were parsed: those of an own URL, if that is requested as external media (contract §14). */
  readonly text: string;
};

/** Settings by which request targets are read. */
export interface ParseOptions {
  /** Those of contract §1 by default. */
  readonly resources?: Resources;
  /**
   * Reads the URL text from the path of external media; returns `undefined` if its signature is missing or wrong. Without
   * this function, external media are disabled.
   */
  readonly readExternal?: ((rawPath: string) => string | undefined) | undefined;
  readonly publicUrls?: readonly PublicUrl[];
}

/** Parses a request target into a canonical request. @param target path and query as they arrived in the request line */
export function parseTarget(target: string, reading: ParseOptions = {}): RequestTarget {
  const { readExternal, publicUrls = [] } = reading;
  const [rawPath, rawQuery] = splitTarget(target);
  if (readExternal === undefined || !isExternalPath(rawPath)) {
    return parseStoredTarget(target, reading);
  }
  const url = readExternal(rawPath);
  if (url === undefined) {
    return { kind: 'invalid', text: target, error: new MediaError('UNAUTHORIZED') };
  }
  // A signed target that is not a URL has an empty text.
  const own =
    url === '' || publicUrls.length === 0 ? undefined : parseOwnUrl(url, rawQuery, reading);
  return own ?? parseExternalTarget(target, url, reading);
}

/**
 * Parses the target that an own URL has here. If that is external media, their URL must not be another own one, unless
 * that is of a stored original.
 *
 * @param outerQuery replaces the query that the URL does not have
 * @returns `undefined` if the URL is not ours, or not of media
 */
export function parseOwnUrl(
  ownUrl: string,
  outerQuery: string,
  reading: ParseOptions,
  mayUnwrap = true,
): RequestTarget | undefined {
  const { readExternal, publicUrls = [] } = reading;
  const [path, query] = splitTarget(findOwnTarget(ownUrl, publicUrls) ?? '');
  const rawQuery = query || outerQuery;
  const target = rawQuery === '' ? path : `${path}?${rawQuery}`;
  if (!isExternalPath(path)) {
    const parsed = parseStoredTarget(target, reading);
    return parsed.kind === 'unknown' ? undefined : parsed;
  }
  const url = mayUnwrap ? readExternal?.(path) : undefined;
  if (url === undefined) return undefined;
  const isOwn = findOwnTarget(url, publicUrls) !== undefined;
  return isOwn
    ? parseOwnUrl(url, rawQuery, reading, false)
    : parseExternalTarget(target, url, reading);
}

/** Parses a target in the storage, of default avatars, or of external media where these are disabled. */
function parseStoredTarget(
  text: string,
  { resources = contractResources }: ParseOptions,
): RequestTarget {
  const { rawPath, rawQuery, isDownload } = strictTargetOf(text, resources);
  const parsedPath = parsePath(rawPath, resources);
  if (parsedPath.kind === 'no template') return { kind: 'unknown', text };

  const faults: RequestFault[] = parsedPath.kind === 'invalid' ? [...parsedPath.faults] : [];
  const resource = parsedPath.kind === 'invalid' ? parsedPath.resource : parsedPath.path.resource;
  const queryKind = resourceRows[resource].query;
  const parsedQuery = parseQuery(queryKind, rawQuery, resources.isLenient);
  if (parsedQuery.kind === 'invalid') faults.push(...parsedQuery.faults);
  if (parsedPath.kind === 'invalid' || parsedQuery.kind === 'invalid') {
    return { kind: 'invalid', text, error: new MediaError('INVALID_FORM_BODY', { faults }) };
  }

  const { path } = parsedPath;
  if (queryKind === 'none') {
    return { kind: 'default avatar', text, index: path.values.index ?? '' };
  }
  const request = createStoredRequest(path, parsedQuery.query, rawQuery, resources);
  return { kind: 'media', text, request, isDownload };
}

/** @param url that the signed path contains, or other signed text */
function parseExternalTarget(
  text: string,
  url: string,
  { resources = contractResources }: ParseOptions,
): RequestTarget {
  const { rawQuery, isDownload } = strictTargetOf(text, resources);
  const resource = 'external media';
  const parsedQuery = parseQuery(resourceRows[resource].query, rawQuery, resources.isLenient);
  if (parsedQuery.kind === 'invalid') {
    const { faults } = parsedQuery;
    return { kind: 'invalid', text, error: new MediaError('INVALID_FORM_BODY', { faults }) };
  }
  const canonical = canonicalUrlOf(url) ?? url;
  const subject = {
    resource,
    originKey: externalKeyOf(canonical),
    url: canonical,
    filename: undefined,
  } as const;
  const name = readUrl(canonical)?.pathname;
  const strict = createRequest(subject, undefined, parsedQuery.query);
  const request = withOpenQuality(strict, name, rawQuery, resources.isLenient);
  return { kind: 'media', text, request, isDownload };
}

function strictTargetOf(text: string, resources: Resources): StrictTarget {
  const [rawPath, rawQuery] = splitTarget(text);
  if (resources.isLenient) return toStrict(rawPath, rawQuery, resources);
  return { rawPath, rawQuery, isDownload: false };
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

/** Whether a name, or a key that ends with it, is that of a video (contract §12). Bytes decide whether it is one. */
export function isVideoName(name = ''): boolean {
  return /\.(?:mp4|m4v|mov|webm|mkv)$/i.test(name);
}

/** Returns the request for the original of another one, byte for byte. */
export function unchangedOf(request: MediaRequest): MediaRequest {
  return { ...request, quality: 'lossless', isAnimated: false, isPassthrough: true };
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
