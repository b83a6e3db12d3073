import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** Paths of the platform's API: each takes POST, but for the check of its health. */
export const HEALTH_PATH = '/_health';
const POST_PATHS: readonly string[] = ['/_metadata', '/_sniff', '/_thumbnail', '/_frames'];

/** Time for a whole request to arrive, in milliseconds: as long as the platform waits. */
export const REQUEST_TIMEOUT_MS = 30_000;

export function isInternalPath(target: string): boolean {
  // Every request of the public listener is checked, so the common case is one comparison.
  if (target.charCodeAt(1) !== 0x5f) return false;
  const [path = ''] = target.split('?', 1);
  return path === HEALTH_PATH || POST_PATHS.includes(path);
}

/** Returns the methods at an internal path, as in `Allow`. */
export function internalMethods(target: string): string {
  return target.startsWith(HEALTH_PATH) ? 'GET, HEAD' : 'POST';
}

/** Serves a request of the public listener by the internal server, which does not listen itself. */
export function serveInternal(
  internal: FastifyInstance,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  // The public listener bounds no body that belongs to a handler.
  const timer = setTimeout(() => request.destroy(), REQUEST_TIMEOUT_MS);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  // It answers no `Expect`, either; HTTP/1.0 has no 100 (RFC 9110 section 10.1.1).
  const { headers, httpVersion } = request;
  if (headers.expect !== undefined && httpVersion !== '1.0') response.writeContinue();
  internal.routing(request, response);
}
