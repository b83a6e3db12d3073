import type { Config } from '../config/config.ts';
import { MediaError, methodNotAllowed } from '../contract/errors.ts';
import { COMMON_HEADERS, publicMaxAge } from './head.ts';

/** Failure that a response reports: a `MediaError`, or one with a code that is not in the registry. */
export interface Failure
  extends Pick<MediaError, 'status' | 'message'>,
    Partial<Pick<MediaError, 'faults' | 'retryAfterSeconds' | 'headers'>> {
  readonly code: string;
}

/** Formats an error response of any listener (contract §5). @param commonHeaders headers of all its responses */
export function formatFailure(failure: Failure, commonHeaders: Readonly<Record<string, string>>) {
  const { status, code, message, faults = [], retryAfterSeconds, headers = {} } = failure;
  const error = {
    code,
    message,
    ...(code === 'INVALID_FORM_BODY' && { errors: faults }),
    ...(code === 'RATE_LIMITED' && { retry_after: retryAfterSeconds ?? 1 }),
  };
  const body = Buffer.from(JSON.stringify(error));
  // Pages of other sites may read the rate limit (contract §11).
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
 * Returns the `Cache-Control` of an error (contract §4): `no-store` for errors that a retry may resolve.
 *
 * @param findMaxSeconds returns the maximum for a 400, 415 or 422. A 404 does not call it, so that a refused URL and a
 *   missing original look alike, even in response time
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

/** Creates a 405, or a 404 for an unknown path. @param allowedMethods methods of a known path, as in `Allow` */
export function refuseMethod(allowedMethods: string | undefined): MediaError {
  if (allowedMethods === undefined) return new MediaError('NOT_FOUND');
  return methodNotAllowed(allowedMethods);
}
