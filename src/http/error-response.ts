import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorRegistry, MediaError } from '../contract/errors.ts';
import type { Log } from '../pipeline/ports.ts';
import { shortenTarget } from '../telemetry/request-log.ts';
import { errorCacheControl, type MaxAgeSeconds } from './media/cache-policy.ts';
import type { RequestRecord } from './request-record.ts';

/** Body of an error answer (reference, "Error object"). */
interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
  readonly retry_after?: number;
}

/** What an error is answered with, and who is told of it. */
interface ErrorAnswerOptions {
  readonly maxAgeSeconds: MaxAgeSeconds;
  readonly log: Log;
  readonly record: RequestRecord | undefined;
}

/**
 * Answers with an error of the registry. Anything that is not a `MediaError` is a bug of ours: it is
 * logged with its cause and shown as 500 without a word of it.
 */
export function sendError(
  reply: FastifyReply,
  error: unknown,
  { maxAgeSeconds, log, record }: ErrorAnswerOptions,
): FastifyReply {
  const known =
    error instanceof MediaError ? error : new MediaError('INTERNAL_ERROR', { cause: error });
  record?.noteError(known);
  reportError(known, reply.request, log);
  reply
    .status(known.status)
    .header('cache-control', errorCacheControl(known.status, maxAgeSeconds))
    .header('content-type', 'application/json; charset=utf-8');
  if (known.retryAfterSeconds !== undefined) reply.header('retry-after', known.retryAfterSeconds);
  return reply.send(Buffer.from(JSON.stringify(formatError(known))));
}

function formatError({ code, message, faults, retryAfterSeconds }: MediaError): ErrorBody {
  return {
    code,
    message,
    ...(code === 'INVALID_FORM_BODY' && { errors: faults }),
    ...(code === 'RATE_LIMITED' && { retry_after: retryAfterSeconds ?? 1 }),
  };
}

/**
 * Tells the operator of an error, if it is any of his business. What clients can cause at will is told
 * in a line; a stack is for what has to be mended.
 */
export function reportError(error: MediaError, request: FastifyRequest, log: Log): void {
  const { code, cause } = error;
  const { id, originalUrl, ip: client } = request;
  const where = { id, code, url: shortenTarget(originalUrl), client };
  const brief = { ...where, reason: cause instanceof Error ? cause.message : undefined };
  switch (errorRegistry[code].fault) {
    case 'service':
    case 'origin':
      log.error({ ...where, err: error }, 'a request failed');
      break;
    case 'load':
      log.warn(brief, 'a request was turned away');
      break;
    case 'original':
      log.info(brief, 'an original was refused');
      break;
    case 'client':
      break;
  }
}
