import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import { ListUnavailable } from '../../pipeline/blocks/block-list.ts';
import type { Log } from '../../pipeline/ports.ts';
import { describeTarget } from '../../telemetry/redaction.ts';
import { type Failure, formatFailure } from '../failure.ts';

/** Replies of the admin and internal listeners, and the check of their tokens. */

/** Maximum number of logged items of a request; `more` has the number of others. */
const MAX_LOGGED_ITEMS = 10;

export const notFound = new MediaError('NOT_FOUND');
const internalError = new MediaError('INTERNAL_ERROR');
const INVALID_BODY = 'Expected a JSON body that is not too long.';

/** Returns a function that checks an `Authorization` header in constant time. */
export function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token);
  return (authorization) => timingSafeEqual(digest(bearerOf(authorization)), expected);
}

/** Returns the token of a header, or an empty string; the scheme is case-insensitive (RFC 9110 §11.1). */
function bearerOf(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

export function sendUnauthorized(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  const message = 'A valid token is required.';
  return sendFailure(reply, { status: 401, code: 'UNAUTHORIZED', message });
}

export function sendFailure(reply: FastifyReply, failure: Failure): FastifyReply {
  const { status, headers, body } = formatFailure(failure, { 'cache-control': 'no-store' });
  return reply.status(status).headers(headers).send(body);
}

/** Hashes a text, so that the time of a comparison does not depend on its length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

const listUnavailable = {
  status: 503,
  code: 'BLOCKLIST_UNAVAILABLE',
  message: 'The block list cannot be read or written. The last valid list remains in force.',
} as const satisfies Failure;

/** Replies to errors of handlers, and logs unexpected ones with this message. */
export function replyToErrors(server: FastifyInstance, message: string, log: Log): void {
  server.setNotFoundHandler((_request, reply) => sendFailure(reply, notFound));
  server.setErrorHandler((error, _request, reply) => {
    if (error instanceof MediaError) return sendFailure(reply, error);
    if (error instanceof ListUnavailable) return sendFailure(reply, listUnavailable);
    const status = statusOf(error);
    if (status < 500) {
      return sendFailure(reply, { status, code: 'INVALID_FORM_BODY', message: INVALID_BODY });
    }
    // A disconnect aborts the work on a request.
    const isAborted = reply.raw.destroyed && error instanceof Error && error.name === 'AbortError';
    if (!isAborted) log.error({ err: error }, message);
    return sendFailure(reply, internalError);
  });
}

/** Returns the status of Fastify's errors, such as invalid JSON or a body that is too long; 500 for others. */
function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' ? status : 500;
}

/** Returns the log field with the body of a request, up to its first items. */
export function logFieldOf(body: unknown): { readonly asked: object } {
  const described: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body ?? {})) {
    const items = [value].flat();
    const logged = items.slice(0, MAX_LOGGED_ITEMS).map((item) => describeTarget(String(item)));
    described[name] = Array.isArray(value) ? logged : logged[0];
    if (items.length > logged.length) described.more = items.length - logged.length;
  }
  return { asked: described };
}
