import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import { ListUnavailable } from '../../pipeline/blocks/block-list.ts';
import type { Log } from '../../pipeline/ports.ts';
import { describeTarget } from '../../telemetry/redaction.ts';
import { type Failure, formatFailure } from '../failure.ts';

/** Replies of the listeners that are not for clients, and the check of their tokens. */

/** Items of an order that the log shows; it counts the others. */
const MAX_LOGGED_ITEMS = 10;

export const notFound = new MediaError('NOT_FOUND');
const internalError = new MediaError('INTERNAL_ERROR');

/** Returns a function that tells, in constant time, whether an `Authorization` header has a token. */
export function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token);
  return (authorization) => timingSafeEqual(digest(bearerOf(authorization)), expected);
}

/** Returns the token of a request, or an empty text; the scheme's case does not matter (RFC 9110 §11.1). */
function bearerOf(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

export function sendUnauthorized(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  const message = 'A valid token is needed.';
  return sendFailure(reply, { status: 401, code: 'UNAUTHORIZED', message });
}

export function sendFailure(reply: FastifyReply, failure: Failure): FastifyReply {
  const { status, headers, body } = formatFailure(failure, { 'cache-control': 'no-store' });
  return reply.status(status).headers(headers).send(body);
}

/** Hashes a text, so that the comparison takes equally long for every token of any length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

const listUnavailable = {
  status: 503,
  code: 'BLOCKLIST_UNAVAILABLE',
  message: 'The list of blocks cannot be read or written. The last one holds.',
} as const satisfies Failure;

/** Replies to what a handler throws; the log has errors that are no refusals. */
export function replyToErrors(server: FastifyInstance, failed: string, log: Log): void {
  server.setNotFoundHandler((_request, reply) => sendFailure(reply, notFound));
  server.setErrorHandler((error, _request, reply) => {
    if (error instanceof MediaError) return sendFailure(reply, error);
    if (error instanceof ListUnavailable) return sendFailure(reply, listUnavailable);
    const status = statusOf(error);
    if (status < 500) {
      const message = 'The body is not what was expected: JSON, and not too long.';
      return sendFailure(reply, { status, code: 'INVALID_FORM_BODY', message });
    }
    // A client that has left ends the work on its request: nobody waits for this response.
    const hasLeft = reply.raw.destroyed && error instanceof Error && error.name === 'AbortError';
    if (!hasLeft) log.error({ err: error }, failed);
    return sendFailure(reply, internalError);
  });
}

/** Returns the status of Fastify's own refusals: no JSON, another media type, too long. */
function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' ? status : 500;
}

/** Returns an order in the words of the API, cut to what a line of the log can hold. */
export function describeOrder(body: unknown): object {
  const described: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body ?? {})) {
    const items = [value].flat();
    const logged = items.slice(0, MAX_LOGGED_ITEMS).map((item) => describeTarget(String(item)));
    described[name] = Array.isArray(value) ? logged : logged[0];
    if (items.length > logged.length) described.more = items.length - logged.length;
  }
  return described;
}
