import { MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf, findLocalTarget, type PublicUrl, readUrl } from './external-url.ts';
import {
  type Extension,
  formatOfExtension,
  isLossless,
  type OutputFormat,
  outputFormats,
  type Quality,
} from './image-formats.ts';
import { normalizeLenient, type StrictTarget } from './leniency.ts';
import { type MediaPath, originKeyOf, parsePath } from './media-path.ts';
import { type MediaQuery, parseQuery } from './media-query.ts';
import { contractResources, type ResourceName, type Resources, resourceRows } from './resources.ts';
import { externalKeyOf, isExternalPath } from './signing/external-path.ts';

/** Videos (contract §12), or all lossily encoded originals including videos (contract §14). */
export type HighFor = 'videos' | 'lossy originals';

/** Request in canonical form (contract §2): requests for equal bytes have the same `resultKey`. */
export interface MediaRequest extends Pick<MediaQuery, 'widthPx' | 'heightPx' | 'quality'> {
  readonly resource: ResourceName;
  readonly originKey: string;
  /** Canonical URL of external media, or signed text that is not a URL, whose fetch will fail. */
  readonly url: string | undefined;
  readonly filename: string | undefined;
  /** `undefined` for the original's format. */
  readonly format: OutputFormat | undefined;
  /** Originals to render with `high` instead of `quality`, because the request has no quality. */
  readonly highFor?: HighFor;
  /** Whether the result is animated, if original and format are. */
  readonly isAnimated: boolean;
  /** Whether the response is the unmodified original, regardless of its format (contract §2, external). */
  readonly isPassthrough: boolean;
}

export type RequestTarget = (
  | {
      readonly kind: 'media';
      readonly request: MediaRequest;
      readonly isDownload: boolean;
    }
  | { readonly kind: 'default avatar'; readonly index: string }
  | {
      readonly kind: 'invalid';
      /** `UNAUTHORIZED` for an invalid signature of external media, else `INVALID_FORM_BODY`. */
      readonly error: MediaError;
    }
  | { readonly kind: 'unknown' }
) & {
  /** Path and query, of the inner URL if external media name a URL of this service (contract §14). */
  readonly text: string;
};

export interface ParseOptions {
  readonly resources?: Resources;
  /** Returns the URL in a path of external media; `undefined` if its signature is invalid. Omit to disable such paths. */
  readonly readExternal?: ((rawPath: string) => string | undefined) | undefined;
  readonly publicUrls?: readonly PublicUrl[];
}

/** @param target path and query as in the request line */
export function parseTarget(target: string, options: ParseOptions = {}): RequestTarget {
  const { readExternal, publicUrls = [] } = options;
  const [rawPath, rawQuery] = splitTarget(target);
  if (readExternal === undefined || !isExternalPath(rawPath)) {
    return parseStoredTarget(target, options);
  }
  const url = readExternal(rawPath);
  if (url === undefined) {
    return { kind: 'invalid', text: target, error: new MediaError('UNAUTHORIZED') };
  }
  // The text is empty if the signed target is not a URL.
  const local =
    url === '' || publicUrls.length === 0 ? undefined : parseLocalUrl(url, rawQuery, options);
  return local ?? parseExternalTarget(target, url, options);
}

/**
 * Parses a URL of this service. If it is for external media, their URL may in turn be one of this service, but only once.
 *
 * @param outerQuery used if the URL has no query
 * @returns `undefined` for a URL of another site, or one that is not for media
 */
export function parseLocalUrl(
  localUrl: string,
  outerQuery: string,
  options: ParseOptions,
  mayUnwrap = true,
): RequestTarget | undefined {
  const { readExternal, publicUrls = [] } = options;
  const [path, query] = splitTarget(findLocalTarget(localUrl, publicUrls) ?? '');
  const rawQuery = query || outerQuery;
  const target = rawQuery === '' ? path : `${path}?${rawQuery}`;
  if (!isExternalPath(path)) {
    const parsed = parseStoredTarget(target, options);
    return parsed.kind === 'unknown' ? undefined : parsed;
  }
  const url = mayUnwrap ? readExternal?.(path) : undefined;
  if (url === undefined) return undefined;
  return findLocalTarget(url, publicUrls) !== undefined
    ? parseLocalUrl(url, rawQuery, options, false)
    : parseExternalTarget(target, url, options);
}

/** Parses a target in the storage, or of a default avatar. */
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
  const filename = filenameOf(path);
  const originKey = originKeyOf(path) ?? '';
  const subject = { resource, originKey, url: undefined, filename };
  const strict = createRequest(subject, path.extension, parsedQuery.query);
  const request = withHighFor(strict, filename, rawQuery, resources.isLenient);
  return { kind: 'media', text, request, isDownload };
}

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
  const request = withHighFor(strict, name, rawQuery, resources.isLenient);
  return { kind: 'media', text, request, isDownload };
}

function strictTargetOf(text: string, resources: Resources): StrictTarget {
  const [rawPath, rawQuery] = splitTarget(text);
  if (resources.isLenient) return normalizeLenient(rawPath, rawQuery, resources);
  return { rawPath, rawQuery, isDownload: false };
}

/** Adds `highFor` to a request without a quality: for videos by name (contract §12), or for lossy originals (§14). */
function withHighFor(
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

/** Returns the file name of an original that browsers may save. */
function filenameOf({ resource, values }: MediaPath): string | undefined {
  if (resource === 'entrance sound') return `${values.sound_name}.${values.ext}`;
  return resource === 'attachment' ? values.filename : undefined;
}

type Subject = Pick<MediaRequest, 'resource' | 'originKey' | 'url' | 'filename'>;

/** Creates the canonical request, in which values without effect have defaults. */
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

/** Whether a file name or key has the extension of a video (contract §12). */
export function isVideoName(name = ''): boolean {
  return /\.(?:mp4|m4v|mov|webm|mkv)$/i.test(name);
}

export function passthroughOf(request: MediaRequest): MediaRequest {
  return { ...request, quality: 'lossless', isAnimated: false, isPassthrough: true };
}

/** Splits a request target into raw path and query, without scheme and authority (RFC 9112 §3.2.2) or fragment. */
export function splitTarget(target: string): [path: string, query: string] {
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
  isAsset: boolean,
): boolean {
  if (format === undefined) return animated;
  if (!outputFormats[format].canAnimate) return false;
  return animated || (outputFormats[format].animatesByDefault && isAsset);
}
