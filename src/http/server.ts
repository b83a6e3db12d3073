import type { Server, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  fastify,
} from 'fastify';
import { MediaError } from '../media/errors.ts';
import { isKnownPath } from '../media/media-request.ts';
import type { Clock, Log } from '../pipeline/ports.ts';
import { RequestTrace } from '../pipeline/request-trace.ts';
import type { MaxAgeSeconds } from './cache-policy.ts';
import { formatCacheStatus } from './cache-status.ts';
import { reportError, sendError } from './error-answer.ts';
import type { MediaHandler, RequestContext } from './media-handler.ts';
import { formatServerTiming } from './server-timing.ts';

interface ServerOptions {
  readonly handler: MediaHandler;
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** Who may say where a request came from; see Fastify's `trustProxy`. */
  readonly trustProxy: boolean | string[];
  /** Certificate and key in PEM; with them the listener speaks TLS 1.2 and newer, and HTTP/2. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

/** Headers of every answer, errors included (spec §4). */
const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Accept-Ranges, Cache-Status, Content-Disposition, Content-Length, Content-Range, ETag, Server-Timing',
  'timing-allow-origin': '*',
} as const;

/** Answer to a preflight; nothing here reads a header that could not be sent by anyone. */
const PREFLIGHT_HEADERS = {
  allow: ALLOWED_METHODS,
  'access-control-allow-methods': ALLOWED_METHODS,
  'access-control-allow-headers': '*, Authorization',
  'access-control-max-age': '86400',
} as const;

/** A request whose bytes are no HTTP, by the parser's error code (RFC 9110 §15.5, RFC 6585 §5). */
const MALFORMED_REQUEST_STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Creates the HTTP server; it does not listen yet. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { handler, log, maxAgeSeconds } = options;
  // Per connection. Answers to pipelined requests go out in order: once the last one is out, all are.
  const lastAnswers = new WeakMap<Socket, ServerResponse>();
  const server = createFastify(options.tls, {
    // The path grammar is ours, to the byte; Fastify's router would decode and normalize first. So
    // it sees one path, and the parser gets `originalUrl`.
    rewriteUrl: () => '/',
    logger: false,
    trustProxy: options.trustProxy,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => {
      const isIdle = lastAnswers.get(socket)?.writableFinished ?? true;
      // In mid-answer, the bytes of another one would be taken for a part of its body.
      if (error.code === 'ECONNRESET' || !socket.writable || !isIdle) socket.destroy();
      else answerMalformed(error, socket);
    },
  });

  const contexts = new WeakMap<FastifyRequest, RequestContext>();

  server.addHook('onRequest', async (request, reply) => {
    lastAnswers.set(request.raw.socket, reply.raw);
    contexts.set(request, createContext(reply, options.clock));
    reply.headers(COMMON_HEADERS);
    if (request.method === 'GET' || request.method === 'HEAD') return undefined;
    // All else ends here: Fastify would read its body, and refuse what it cannot parse.
    if (!isKnownPath(request.originalUrl)) throw new MediaError('NOT_FOUND');
    if (request.method === 'OPTIONS') return reply.status(204).headers(PREFLIGHT_HEADERS).send();
    reply.header('allow', ALLOWED_METHODS);
    throw new MediaError('METHOD_NOT_ALLOWED');
  });

  const sockets = new Set<Socket>();
  server.server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let isClosing = false;
  server.addHook('preClose', async () => {
    isClosing = true;
    for (const socket of sockets) if (!hasAsked(socket)) socket.destroy();
  });
  // A client may connect ahead of time and then say nothing; Node waits for what it has to say.
  const hasAsked = (socket: Socket | TLSSocket): boolean =>
    lastAnswers.has(socket) || ('alpnProtocol' in socket && socket.alpnProtocol === 'h2');
  // A connection that was busy when the closing began would be kept alive for its client, and the
  // closing would wait for it.
  server.addHook('onResponse', async () => {
    if (isClosing) setImmediate(() => server.server.closeIdleConnections());
  });

  server.addHook('onSend', async (request, reply, payload) => {
    if (isClosing && isHttp1(request)) reply.header('connection', 'close');
    const context = contexts.get(request);
    if (context === undefined) return;
    const { outcome, timings } = context.trace;
    if (outcome !== undefined) reply.header('cache-status', formatCacheStatus(outcome));
    const serverTiming = formatServerTiming(timings);
    if (serverTiming !== undefined) reply.header('server-timing', serverTiming);
    if (!(payload instanceof Readable)) return;
    payload.once('error', (error) => {
      // Before the head is out, the error handler hears of it; afterwards nobody but us does.
      if (!reply.raw.headersSent || context.signal.aborted || !(error instanceof MediaError))
        return;
      reportError(error, request, log);
    });
  });

  server.setErrorHandler((error, request, reply) => {
    if (!contexts.get(request)?.signal.aborted) return sendError(reply, error, maxAgeSeconds, log);
    // The client has gone: there is nobody to answer, but a bug is a bug.
    if (!(error instanceof MediaError) && !isAbort(error)) {
      reportError(new MediaError('INTERNAL_ERROR', { cause: error }), request, log);
    }
    reply.hijack();
    if (isHttp1(request)) reply.raw.destroy();
    return undefined;
  });
  // Only methods without a route come here; `onRequest` has answered them already.
  server.setNotFoundHandler((_request, reply) =>
    sendError(reply, new MediaError('METHOD_NOT_ALLOWED'), maxAgeSeconds, log),
  );

  server.route({
    method: ['GET', 'HEAD'],
    url: '/',
    handler: (request, reply) => {
      const context = contexts.get(request) ?? createContext(reply, options.clock);
      return handler.handle(request, reply, context);
    },
  });
  return server;
}

function createContext(reply: FastifyReply, clock: Clock): RequestContext {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return { trace: new RequestTrace(clock), signal: gone.signal };
}

/** With TLS, HTTP/2 and 1.1 by the client's choice (ALPN); without, HTTP/1.1. */
function createFastify(
  tls: ServerOptions['tls'],
  options: FastifyServerOptions<Server>,
): FastifyInstance {
  if (tls === undefined) return fastify(options);
  const secure = fastify({
    // Fastify's types know no server of both versions: its options are those of one or the other.
    ...(options as object),
    http2: true,
    https: { ...tls, allowHTTP1: true, minVersion: 'TLSv1.2' },
  });
  // Sessions are kept open by their clients; a stopping server takes leave of them (RFC 9113 §6.8).
  const sessions = new Set<ServerHttp2Session>();
  secure.server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  secure.addHook('preClose', async () => {
    for (const session of sessions) session.close();
  });
  // Node gives HTTP/2 requests the interface of HTTP/1.1's; where they differ, `isHttp1` is asked.
  return secure as unknown as FastifyInstance;
}

function isHttp1({ raw }: FastifyRequest): boolean {
  return raw.httpVersionMajor === 1;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** Answers what is no HTTP request, in the error format of the contract, and hangs up. */
function answerMalformed(error: Error & { readonly code?: string }, socket: Socket): void {
  const status = MALFORMED_REQUEST_STATUS[error.code ?? ''] ?? '400 Bad Request';
  const body = JSON.stringify({
    code: 'INVALID_FORM_BODY',
    message: 'The request is not valid HTTP.',
    errors: [],
  });
  const headers = Object.entries({
    ...COMMON_HEADERS,
    connection: 'close',
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join('')}\r\n${body}`);
}
