/** Heads of responses: fields that all have, caching (RFC 9111), what came of the request, and prepared heads of bodies. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config/config.ts';
import type { CdnTags } from '../contract/cdn-tags.ts';
import { MediaError } from '../contract/errors.ts';
import type { CacheOutcome, StageTiming } from '../pipeline/request-trace.ts';
import type { Validators } from '../pipeline/results/results.ts';
import { isNotModified, isPreconditionFailed, isRangeApplicable } from './conditional.ts';
import { formatContentRange, parseRange } from './range.ts';

/** Methods of media and pages. */
export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

/** Headers of every response, errors included (contract §4). */
export const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Accept-Ranges, Cache-Status, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After, Server-Timing, X-Request-Id',
  'timing-allow-origin': '*',
} as const;

const COMMON_FIELDS = Object.entries(COMMON_HEADERS).flat();

/** Returns the headers of the response to a preflight, which says what pages of any site may send. */
export function preflightHeaders(methods: string, headers: string) {
  return {
    allow: methods,
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headers,
    'access-control-max-age': '86400',
  };
}

/** Form of an id from outside: UUIDs, ULIDs, trace ids, ids of nginx and load balancers; safe in headers and the log. */
export const REQUEST_ID_FORM = /^[A-Za-z0-9._~+/=:-]{1,128}$/;

/** Returns the id of a request: its `X-Request-Id`, if that is well-formed; else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID_FORM.test(header) ? header : randomUUID();
}

/** Seconds for which a shared cache may keep each kind of response (contract §4); `undefined`: caches keep none. */
export type MaxAgeSeconds = Config['http']['maxAgeSeconds'];

/** Returns the `Cache-Control` of a response that any cache may keep for a time. */
export function cacheFor(maxAgeSeconds: number): string {
  return `public, max-age=${Math.floor(maxAgeSeconds)}`;
}

/**
 * Returns the `Cache-Control` of an error; no cache keeps an error that may be gone at the next try.
 *
 * @param findBoundSeconds returns the bound of a 400, 415 or 422. A 404 must not tell a refused URL from a missing
 *   original, not even by the time that the bound takes
 */
export function errorCacheControl(
  { code, status }: Pick<MediaError, 'code' | 'status'>,
  { notFound, unknownMedia, refused }: MaxAgeSeconds,
  findBoundSeconds: (() => number | undefined) | undefined,
): string {
  switch (status) {
    case 404: {
      const maxAgeSeconds = code === 'UNKNOWN_MEDIA' ? unknownMedia : notFound;
      return maxAgeSeconds === undefined ? 'no-store' : cacheFor(maxAgeSeconds);
    }
    case 400:
    case 415:
    case 422:
      return cacheFor(Math.min(refused, findBoundSeconds?.() ?? refused));
    default:
      return 'no-store';
  }
}

/**
 * Formats the `Cache-Status` of a response (RFC 9211 §2), for the cache named `darkroom`: `darkroom; hit`, or
 * `darkroom; fwd=miss; stored`, with `fwd-status`, `collapsed` and `detail` where they hold.
 */
export function formatCacheStatus(outcome: CacheOutcome): string {
  if (outcome.kind === 'hit') {
    return outcome.detail === undefined
      ? 'darkroom; hit'
      : `darkroom; hit; detail=${outcome.detail}`;
  }
  const parameters = ['darkroom', `fwd=${outcome.kind}`];
  if (outcome.originStatus !== undefined) parameters.push(`fwd-status=${outcome.originStatus}`);
  if (outcome.stored) parameters.push('stored');
  if (outcome.collapsed) parameters.push('collapsed');
  if (outcome.detail) parameters.push(`detail=${outcome.detail}`);
  return parameters.join('; ');
}

/**
 * Formats the `Server-Timing` of a response (W3C Server Timing §2): `store;dur=0.021, origin;dur=12.5`, in milliseconds
 * to the microsecond; `undefined` if the request entered no stage.
 */
export function formatServerTiming(timings: readonly StageTiming[]): string | undefined {
  let text: string | undefined;
  for (const { stage, durationMs } of timings) {
    // Rounded, so that no exponent is left: 1e-7 has no place in the header's grammar.
    const timing = `${stage};dur=${Math.round(durationMs * 1000) / 1000}`;
    text = text === undefined ? timing : `${text}, ${timing}`;
  }
  return text;
}

/** Header by which the CDN in front finds responses of an original, as name and value. */
export type TagField = readonly [name: string, value: string];

/** Number of originals whose tags are remembered. */
const MAX_TAG_FIELDS = 8_192;

/** Returns the tags of originals, and remembers those of single ones: a tag takes some 15 µs, as long as a hit. */
export function cacheTagFields(tags: CdnTags): (originKeys: readonly string[]) => TagField {
  const fields = new LRUCache<string, TagField>({
    max: MAX_TAG_FIELDS,
    memoMethod: (originKey) => tags.fieldOf(originKey),
  });
  return ([originKey = '', ...more]) =>
    more.length === 0 ? fields.memo(originKey) : tags.fieldOf(originKey, ...more);
}

/** Properties of a body that are known before it is sent. */
export interface Content {
  readonly contentType: string;
  readonly contentDisposition: string | undefined;
  readonly validators: Validators;
  /** Value of `X-Robots-Tag`; empty: the response has none. */
  readonly robotsTag: string;
  /** `undefined`: unknown before its end. */
  readonly sizeBytes: number | undefined;
  /** Whether it can be had in parts; some sites give none of theirs. */
  readonly hasRanges?: boolean;
  /** Header for the CDN in front, as name and value. */
  readonly tagField?: TagField | undefined;
}

/**
 * Prepared heads of a body, as names and values in turn. `Cache-Control` is not among them: it depends on the time of
 * the response, and on the URL.
 */
export interface Head {
  readonly validators: Validators;
  readonly sizeBytes: number | undefined;
  readonly hasRanges: boolean;
  /** Fields of a 304. */
  readonly validatorFields: readonly string[];
  /** Fields of a 206 without its length and range. */
  readonly partFields: readonly string[];
  /** Fields of a 200. */
  readonly wholeFields: readonly string[];
}

/** Prepares the heads of a body. */
export function prepareHead(content: Content): Head {
  const { contentType, contentDisposition, validators, sizeBytes, hasRanges = true } = content;
  const validatorFields = formatValidators(validators, content.robotsTag, content.tagField);
  const partFields = [...validatorFields, 'content-type', contentType];
  partFields.push('accept-ranges', hasRanges ? 'bytes' : 'none');
  if (contentDisposition !== undefined) partFields.push('content-disposition', contentDisposition);
  const ofWhole = sizeBytes === undefined ? [] : ['content-length', String(sizeBytes)];
  const wholeFields = [...partFields, ...ofWhole];
  return { validators, sizeBytes, hasRanges, validatorFields, partFields, wholeFields };
}

/** Formats the fields of a 304. */
export function formatValidators(
  { etag, lastModified }: Validators,
  robotsTag: string,
  tagField: TagField | undefined,
): string[] {
  const fields = [...COMMON_FIELDS, ...(tagField ?? [])];
  if (robotsTag !== '') fields.push('x-robots-tag', robotsTag);
  if (etag !== undefined) fields.push('etag', etag);
  if (lastModified !== undefined) fields.push('last-modified', lastModified.toUTCString());
  return fields;
}

/** Response to a GET or HEAD of a body: its head, and the bytes from `first` to `last`, both included. */
export interface Part {
  readonly status: 200 | 206 | 304 | 416;
  readonly fields: readonly string[];
  readonly first: number;
  /** `undefined`: the end, wherever that is. */
  readonly last: number | undefined;
}

/**
 * Selects the response to a GET or HEAD: 304 if the client has the body already (RFC 9110 §13), else the whole or one
 * range of it (§14). A range means nothing to a HEAD (§14.2).
 *
 * @returns of a 416 `Content-Range` alone
 * @throws MediaError `PRECONDITION_FAILED`
 */
export function selectPart({ method, headers }: IncomingMessage, head: Head): Part {
  const { validators, sizeBytes, hasRanges, partFields, wholeFields } = head;
  const last = sizeBytes === undefined ? undefined : sizeBytes - 1;
  if (isPreconditionFailed(headers, validators)) throw new MediaError('PRECONDITION_FAILED');
  if (isNotModified(headers, validators)) {
    return { status: 304, fields: head.validatorFields, first: 0, last };
  }
  const whole = { status: 200, fields: wholeFields, first: 0, last } as const;
  if (method === 'HEAD' || headers.range === undefined) return whole;
  if (!hasRanges || sizeBytes === undefined) return whole;
  const ifRange = headers['if-range'];
  const condition = Array.isArray(ifRange) ? ifRange[0] : ifRange;
  if (!isRangeApplicable(condition, validators)) return whole;
  const range = parseRange(headers.range, sizeBytes);
  if (range === 'full') return whole;
  const ofRange = ['content-range', formatContentRange(range, sizeBytes)];
  if (range === 'unsatisfiable') return { status: 416, fields: ofRange, first: 0, last };
  const ofPart = ['content-length', String(range.last - range.first + 1), ...ofRange];
  return { status: 206, fields: [...partFields, ...ofPart], first: range.first, last: range.last };
}
