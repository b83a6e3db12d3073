import type { Config } from '../config/config.ts';
import { MediaError, methodNotAllowed } from '../contract/errors.ts';
import { COMMON_HEADERS, publicMaxAge } from './head.ts';

/** Failure in a response: a `MediaError`, or one with a code outside of the registry. */
export interface Failure
  extends Pick<MediaError, 'status' | 'message'>,
    Partial<Pick<MediaError, 'faults' | 'retryAfterSeconds' | 'headers'>> {
  readonly code: string;
}

/**
 * Formats an error response, for every listener (contract §5).
 *
 * @param commonHeaders headers of all responses of the listener
 */
export function formatFailure(failure: Failure, commonHeaders: Readonly<Record<string, string>>) {
  const { status, code, message, faults = [], retryAfterSeconds, headers = {} } = failure;
  const error = {
    code,
    message,
    ...(code === 'INVALID_FORM_BODY' && { errors: faults }),
    ...(code === 'RATE_LIMITED' && { retry_after: retryAfterSeconds ?? 1 }),
  };
  const body = Buffer.from(JSON.stringify(error));
  // Pages of other sites may read the rate limit as well (contract §11).
  const exposed = Object.keys(headers).filter((name) => name.startsWith('X-RateLimit-'));
  const alwaysExposed = COMMON_HEADERS['access-control-expose-headers'];
  return {
    status,
    body,
    headers: {
      ...commonHeaders,
      ...headers,
      ...(retryAfterSeconds !== undefined && {
        'retry-after': String(Math.ceil(retryAfterSeconds)),
      }),
      ...(exposed.length > 0 && {
        'access-control-expose-headers': [alwaysExposed, ...exposed].join(', '),
      }),
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
    },
  };
}

/**
 * Returns the `Cache-Control` of an error (contract §4); caches keep no error that may be gone at the next attempt.
 *
 * @param findMaxSeconds returns the maximum for a 400, 415 or 422. A 404 ignores it, so that a refused URL and a missing
 *   original look alike, even by the time that the computation takes
 */
export function errorCacheControl(
  { code, status }: Pick<MediaError, 'code' | 'status'>,
  { notFound, unknownMedia, refused }: Config['http']['maxAgeSeconds'],
  findMaxSeconds: (() => number | undefined) | undefined,
): string {
  switch (status) {
    case 404: {
      const maxAgeSeconds = code === 'UNKNOWN_MEDIA' ? unknownMedia : notFound;
      return maxAgeSeconds === undefined ? 'no-store' : publicMaxAge(maxAgeSeconds);
    }
    case 400:
    case 415:
    case 422:
      return publicMaxAge(Math.min(refused, findMaxSeconds?.() ?? refused));
    default:
      return 'no-store';
  }
}

/**
 * Creates the refusal of a method: a 405, or a 404 for an unknown path.
 *
 * @param allowedMethods methods of the path; `undefined` for an unknown path
 */
export function refuseMethod(allowedMethods: string | undefined): MediaError {
  if (allowedMethods === undefined) return new MediaError('NOT_FOUND');
  return methodNotAllowed(allowedMethods);
}
