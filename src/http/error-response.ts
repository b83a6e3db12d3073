import { MediaError, type RequestFault, type Share } from '../contract/errors.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from './response-headers.ts';

/** Failure as a client sees it; a `MediaError` is one. */
export interface Failure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** For `INVALID_FORM_BODY` alone. */
  readonly faults?: readonly RequestFault[];
  /** With fractions for `RATE_LIMITED`, whose body has them. */
  readonly retryAfterSeconds?: number | undefined;
  /** For `RATE_LIMITED` alone. */
  readonly share?: Share | undefined;
  /** For `METHOD_NOT_ALLOWED`; those of media where it says none. */
  readonly allowedMethods?: string | undefined;
}

/**
 * Writes the response to a request that has failed, on whatever listener (contract §5).
 *
 * @param headers those of all responses there
 */
export function formatFailure(
  { status, code, message, faults = [], retryAfterSeconds, share, allowedMethods }: Failure,
  headers: Readonly<Record<string, string>>,
) {
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
      ...(code === 'METHOD_NOT_ALLOWED' && { allow: allowedMethods ?? ALLOWED_METHODS }),
      ...(retryAfterSeconds !== undefined && {
        'retry-after': String(Math.ceil(retryAfterSeconds)),
      }),
      ...(share && formatShare(share)),
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
    },
  };
}

/** Formats a client's share as the headers of contract §11, for pages of other sites to read, too. */
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
 * Returns the refusal of a method that means nothing here; on an unknown path, the path is the fault.
 *
 * @param allowedMethods of the path; `undefined`: it is none
 */
export function refuseMethod(allowedMethods: string | undefined): MediaError {
  if (allowedMethods === undefined) return new MediaError('NOT_FOUND');
  return new MediaError('METHOD_NOT_ALLOWED', { allowedMethods });
}
