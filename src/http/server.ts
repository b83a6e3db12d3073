import { Readable } from 'node:stream';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { MediaError } from '../contract/errors.ts';
import { isKnownPath } from '../contract/media-request.ts';
import type { ConnectionCounters } from '../telemetry/connection-counters.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from './common-headers.ts';
import { type ClientLimits, clientLimits } from './edge/client-limits.ts';
import { createListener, type Listener, type ListenerOptions } from './edge/listener.ts';
import { reportError, sendError } from './error-response.ts';
import { EXPLORER_HEADERS, type ExplorerHandler } from './explorer/explorer-handler.ts';
import type { MaxAgeSeconds } from './media/cache-policy.ts';
import { formatCacheStatus } from './media/cache-status.ts';
import type { FastPath } from './media/fast-path.ts';
import type { MediaHandler } from './media/media-handler.ts';
import { formatServerTiming } from './media/server-timing.ts';
import { RequestContexts } from './request-context.ts';
import { requestIdOf } from './request-id.ts';
import type { RequestWatchers } from './request-record.ts';

interface ServerOptions extends Omit<ListenerOptions, 'limits'>, RequestWatchers {
  readonly handler: MediaHandler;
  /** Answers the paths of the explorer; without it, there are none. */
  readonly explorer?: ExplorerHandler | undefined;
  /** Answers what is plain, before anything else sees it. */
  readonly hits: FastPath;
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** Who may say where a request came from; see Fastify's `trustProxy`. */
  readonly trustProxy: boolean | string[];
  /** Other limits than the usual ones, for tests. */
  readonly limits?: Partial<ClientLimits>;
}

/** Answer to a preflight; nothing here reads a header that could not be sent by anyone. */
const PREFLIGHT_HEADERS = {
  allow: ALLOWED_METHODS,
  'access-control-allow-methods': ALLOWED_METHODS,
  'access-control-allow-headers': '*, Authorization',
  'access-control-max-age': '86400',
} as const;

/** The routes as Fastify's router sees them; the URL of each request is one of them. */
const MEDIA_ROUTE = '/';
const EXPLORER_ROUTE = '/explorer';

/** The media listener, and a look at its door. */
export interface MediaServer {
  readonly server: FastifyInstance;
  readonly countConnections: () => ConnectionCounters;
}

/** Creates the HTTP server; it does not listen yet. */
export function createServer(options: ServerOptions): MediaServer {
  const { handler, explorer, log, maxAgeSeconds } = options;
  const limits = { ...clientLimits, ...options.limits };
  let listener: Listener | undefined;
  let isDraining = false;
  const server = fastify({
    serverFactory: (handle) => {
      listener = createListener({ ...options, limits }, (request, response) => {
        // A stop is told to clients the usual way.
        if (isDraining || !options.hits.tryAnswer(request, response)) handle(request, response);
      });
      return listener.server;
    },
    // For the address that it tells; the listener has its own.
    ...(options.tls && { https: {} }),
    // The path grammar is ours, to the byte; Fastify's router would decode and normalize first. So
    // it sees two paths, and the parsers get `originalUrl`.
    rewriteUrl: (request) => (explorer?.isFor(request) ? EXPLORER_ROUTE : MEDIA_ROUTE),
    logger: false,
    genReqId: ({ headers }) => requestIdOf(headers['x-request-id']),
    trustProxy: options.trustProxy,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    clientErrorHandler: () => undefined, // the listener's own is there
  });
  server.addHook('preClose', async () => {
    isDraining = true;
    listener?.drain();
  });

  const contexts = new RequestContexts(options);

  server.addHook('onRequest', async (request, reply) => {
    contexts.of(request, reply);
    const isOfExplorer = request.url === EXPLORER_ROUTE;
    reply.headers(isOfExplorer ? EXPLORER_HEADERS : COMMON_HEADERS);
    if (request.method === 'GET' || request.method === 'HEAD') return undefined;
    // All else ends here: Fastify would read its body, and refuse what it cannot parse.
    if (request.method === 'OPTIONS' && isOfExplorer) {
      // No other site may ask anything of it.
      return reply.status(204).header('allow', ALLOWED_METHODS).send();
    }
    if (request.method === 'OPTIONS' && isKnownPath(request.originalUrl)) {
      return reply.status(204).headers(PREFLIGHT_HEADERS).send();
    }
    throw refuseMethod(request, reply, isOfExplorer);
  });

  server.addHook('onSend', async (request, reply, payload) => {
    const context = contexts.find(request);
    if (context === undefined) return;
    const { outcome, timings } = context.trace;
    if (outcome !== undefined) reply.header('cache-status', formatCacheStatus(outcome));
    const serverTiming = formatServerTiming(timings);
    if (serverTiming !== undefined) reply.header('server-timing', serverTiming);
    context.record.noteBody(payload);
    if (!(payload instanceof Readable)) return;
    payload.once('error', (error) => {
      if (error instanceof MediaError) context.record.noteError(error);
      // Before the head is out, the error handler hears of it; afterwards nobody but us does.
      if (!reply.raw.headersSent || context.signal.aborted || !(error instanceof MediaError))
        return;
      reportError(error, request, log);
    });
  });

  server.setErrorHandler((error, request, reply) => {
    if (isUnroutable(error)) {
      const isOfExplorer = request.url === EXPLORER_ROUTE;
      reply.headers(isOfExplorer ? EXPLORER_HEADERS : COMMON_HEADERS);
      const { record } = contexts.of(request, reply);
      const refusal = refuseMethod(request, reply, isOfExplorer);
      return sendError(reply, refusal, { maxAgeSeconds, log, record });
    }
    const { signal, record } = contexts.of(request, reply);
    if (!signal.aborted) return sendError(reply, error, { maxAgeSeconds, log, record });
    // The client has gone: there is nobody to answer, but a bug is a bug.
    if (!(error instanceof MediaError) && !isAbort(error)) {
      reportError(new MediaError('INTERNAL_ERROR', { cause: error }), request, log);
    }
    reply.hijack();
    if (isHttp1(request)) reply.raw.destroy();
    return undefined;
  });
  // Only methods without a route come here; `onRequest` has answered them already.
  server.setNotFoundHandler((request, reply) => {
    const { record } = contexts.of(request, reply);
    const error = new MediaError('METHOD_NOT_ALLOWED');
    return sendError(reply, error, { maxAgeSeconds, log, record });
  });

  server.route({
    method: ['GET', 'HEAD'],
    url: MEDIA_ROUTE,
    handler: (request, reply) => handler.handle(request, reply, contexts.of(request, reply)),
  });
  if (explorer !== undefined) {
    server.route({
      method: ['GET', 'HEAD'],
      url: EXPLORER_ROUTE,
      handler: (request, reply) => explorer.handle(request, reply),
    });
  }
  return {
    server,
    countConnections: () => {
      if (listener === undefined) throw new Error('Fastify has made no listener.');
      return listener.countConnections();
    },
  };
}

function isHttp1({ raw }: FastifyRequest): boolean {
  return raw.httpVersionMajor === 1;
}

/** Any method but GET, HEAD and OPTIONS, on a path of the contract, of the explorer, or on none. */
function refuseMethod(
  { originalUrl }: FastifyRequest,
  reply: FastifyReply,
  isOfExplorer: boolean,
): MediaError {
  if (!isOfExplorer && !isKnownPath(originalUrl)) return new MediaError('NOT_FOUND');
  reply.header('allow', ALLOWED_METHODS);
  return new MediaError('METHOD_NOT_ALLOWED');
}

/** A method that Fastify's router has never heard of, any token over HTTP/2: it runs no hook of ours. */
function isUnroutable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'FST_ERR_NOT_FOUND';
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
