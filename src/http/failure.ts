import { MediaError, methodNotAllowed, type Share } from '../contract/errors.ts';
import { COMMON_HEADERS } from './head.ts';

/** Failure as a client sees it: a `MediaError`, or one with a code that is none of the registry. */
export interface Failure
  extends Pick<MediaError, 'status' | 'message'>,
    Partial<Pick<MediaError, 'faults' | 'retryAfterSeconds' | 'share' | 'headers'>> {
  readonly code: string;
}

/**
 * Formats the response to a request that has failed, for every listener (contract §5).
 *
 * @param headers headers of all responses of the listener
 */
export function formatFailure(failure: Failure, headers: Readonly<Record<string, string>>) {
  const { status, code, message, faults = [], retryAfterSeconds, share } = failure;
  const error = {
    code,
    message,
    ...(code === 'INVALID_FORM_BODY' && { errors: faults }),
    ...(code === 'RATE_LIMITED' && { retry_after: retryAfterSeconds ?? 1 }),
  };
  const body = Buffer.from(JSON.stringify(error));
  return {
    status,
    body,
    headers: {
      ...headers,
      ...failure.headers,
      ...(retryAfterSeconds !== undefined && {
        'retry-after': String(Math.ceil(retryAfterSeconds)),
      }),
      ...(share && formatShare(share)),
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
    },
  };
}

/** Formats a client's share as the headers of contract §11, which pages of other sites may read as well. */
function formatShare({ requests, remaining, resetAtMs }: Share): Record<string, string> {
  const share = {
    'X-RateLimit-Limit': String(requests),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil(resetAtMs / 1000)),
  };
  const exposed = [COMMON_HEADERS['access-control-expose-headers'], ...Object.keys(share)];
  return { ...share, 'access-control-expose-headers': exposed.join(', ') };
}

/**
 * Creates the refusal of a method; on an unknown path, the path is the fault.
 *
 * @param allowedMethods methods of the path; `undefined`: the path is unknown
 */
export function refuseMethod(allowedMethods: string | undefined): MediaError {
  if (allowedMethods === undefined) return new MediaError('NOT_FOUND');
  return methodNotAllowed(allowedMethods);
}
