import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { type Failure, formatFailure } from '../body.ts';

/** Replies of the listeners that are not for clients, and the check of their tokens. */

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

/** Returns the status of Fastify's own refusals: no JSON, another media type, too long. */
export function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' ? status : 500;
}
