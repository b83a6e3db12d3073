import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** Paths of the platform's API. All except the health check are for POST. */
export const HEALTH_PATH = '/_health';
const POST_PATHS: readonly string[] = ['/_metadata', '/_sniff', '/_thumbnail', '/_frames'];

/** Deadline of receiving a request in milliseconds, which is the platform's timeout. */
export const REQUEST_TIMEOUT_MS = 30_000;

export function isInternalPath(target: string): boolean {
  // Runs for every request of the public listener, so the common case is one comparison.
  if (target.charCodeAt(1) !== 0x5f) return false;
  const [path = ''] = target.split('?', 1);
  return path === HEALTH_PATH || POST_PATHS.includes(path);
}

export function internalMethods(target: string): string {
  return target.startsWith(HEALTH_PATH) ? 'GET, HEAD' : 'POST';
}

export function serveInternal(
  internal: FastifyInstance,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  // The public listener has no deadline for bodies that a handler reads, and sends no 100 (Continue), which HTTP/1.0 does
  // not have (RFC 9110 §10.1.1).
  const timer = setTimeout(() => request.destroy(), REQUEST_TIMEOUT_MS);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  const { headers, httpVersion } = request;
  if (headers.expect !== undefined && httpVersion !== '1.0') response.writeContinue();
  internal.routing(request, response);
}
