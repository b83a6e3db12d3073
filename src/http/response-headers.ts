import { randomUUID } from 'node:crypto';
import type { CacheOutcome, StageTiming } from '../pipeline/request-trace.ts';

/** Methods that get more than a refusal. */
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

/** Headers of the response to a preflight, which says what pages of any site may send. */
export function preflightHeaders(methods: string, headers: string) {
  return {
    allow: methods,
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headers,
    'access-control-max-age': '86400',
  };
}

/** Those of media; nothing here reads a header that not every site could send. */
export const PREFLIGHT_HEADERS = preflightHeaders(ALLOWED_METHODS, '*, Authorization');

/**
 * Form of an id from outside: UUIDs, ULIDs, trace ids, what nginx and load balancers make. It is
 * given back in a header and written to the log, so nothing that either could take for its own syntax.
 */
export const REQUEST_ID_FORM = /^[A-Za-z0-9._~+/=:-]{1,128}$/;

/** The id of a request: that of its `X-Request-Id`, if it is well-formed; else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID_FORM.test(header) ? header : randomUUID();
}

/** Seconds for which a shared cache may keep each kind of response (contract §4). */
export interface MaxAgeSeconds {
  /** Media that was served. */
  readonly media: number;
  readonly defaultAvatar: number;
  /** 404. */
  readonly notFound: number;
  /** 400, 415 and 422: the same request will fail again. */
  readonly refused: number;
}

/** `Cache-Control` of what any cache may keep for some time. */
export function cacheFor(maxAgeSeconds: number): string {
  return `public, max-age=${Math.floor(maxAgeSeconds)}`;
}

/**
 * Returns the `Cache-Control` of an error; what may be different at the next try is not kept.
 *
 * @param findBoundSeconds returns the bound of a 400, 415 or 422. A 404 must not tell a refused URL from a missing
 *   original, not even by the time that the bound takes
 */
export function errorCacheControl(
  status: number,
  { notFound, refused }: MaxAgeSeconds,
  findBoundSeconds: (() => number | undefined) | undefined,
): string {
  switch (status) {
    case 404:
      return cacheFor(notFound);
    case 400:
    case 415:
    case 422:
      return cacheFor(Math.min(refused, findBoundSeconds?.() ?? refused));
    default:
      return 'no-store';
  }
}

/**
 * The `Cache-Status` header of a response (RFC 9211 §2), for the cache named `darkroom`:
 * `darkroom; hit`, or `darkroom; fwd=miss; stored`, with `fwd-status`, `collapsed` and `detail` where
 * they hold. A false parameter is left out, which means the same (§2.3, §2.5).
 */
export function formatCacheStatus(outcome: CacheOutcome): string {
  if (outcome.kind === 'hit' && outcome.detail === undefined) return 'darkroom; hit';
  return ['darkroom', ...parametersOf(outcome)].join('; ');
}

function parametersOf(outcome: CacheOutcome): readonly string[] {
  const detail = outcome.kind !== 'bypass' && outcome.detail ? [`detail=${outcome.detail}`] : [];
  if (outcome.kind === 'hit') return ['hit', ...detail];

  const parameters = [`fwd=${outcome.kind}`];
  if (outcome.originStatus !== undefined) parameters.push(`fwd-status=${outcome.originStatus}`);
  if (outcome.kind !== 'bypass' && outcome.stored) parameters.push('stored');
  if (outcome.collapsed) parameters.push('collapsed');
  return [...parameters, ...detail];
}

/**
 * The `Server-Timing` header (W3C Server Timing §2): `store;dur=0.021, origin;dur=12.5`, in the
 * order given, in milliseconds to the microsecond; `undefined` when no stage was entered. A
 * duration that no clock can measure (negative, NaN) counts as 0.
 */
export function formatServerTiming(timings: readonly StageTiming[]): string | undefined {
  let text: string | undefined;
  for (const { stage, durationMs } of timings) {
    const timing = `${stage};dur=${formatMs(durationMs)}`;
    text = text === undefined ? timing : `${text}, ${timing}`;
  }
  return text;
}

function formatMs(durationMs: number): string {
  const measuredMs = durationMs > 0 ? Math.min(durationMs, Number.MAX_SAFE_INTEGER) : 0;
  // Rounded, so that no exponent is left: 1e-7 has no place in the header's grammar.
  return String(Math.round(measuredMs * 1000) / 1000);
}
