import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { CdnTags } from '../contract/cdn-tags.ts';
import type { ConnectionCounters } from '../telemetry/readiness.ts';
import { trustProxies } from './client-address.ts';
import { type ClientLimits, clientLimits } from './connections/limits.ts';
import { Listener, type ListenerOptions } from './connections/listener.ts';
import { Exchange, type ExchangeOptions, type Work } from './exchange.ts';
import { EXPLORER_HEADERS, type ExplorerHandler } from './explorer/handler.ts';
import { refuseMethod } from './failure.ts';
import { ALLOWED_METHODS, cacheTagFields, preflightHeaders } from './head.ts';
import { internalMethods, isInternalPath, serveInternal } from './internal/routes.ts';
import type { MediaHandler } from './media/handler.ts';
import { RELAY_METHODS, type RelayHandler } from './relay/handler.ts';

interface ServerOptions
  extends Omit<ListenerOptions, 'limits' | 'findMethods' | 'isUpload'>,
    Omit<ExchangeOptions, 'addressesOf' | 'keepAliveTimeoutMs' | 'tagFieldOf'> {
  readonly handler: MediaHandler;
  /** Responds on the paths of the explorer; without it, they are unknown. */
  readonly explorer?: ExplorerHandler | undefined;
  /** Stores uploads; without it, their paths are unknown. */
  readonly relay?: RelayHandler | undefined;
  /** Routes of the platform's API, if they are served here instead of on a listener of their own. */
  readonly internal?: FastifyInstance | undefined;
  readonly trustProxy: boolean | string[];
  /** Tags for the CDN in front. Omit to send none. */
  readonly tags?: CdnTags | undefined;
  /** Limits that a test shortens. */
  readonly limits?: Partial<ClientLimits>;
}

/** Headers of the response to a preflight of media; nothing here reads a header that not every site could send. */
const PREFLIGHT_HEADERS = preflightHeaders(ALLOWED_METHODS, '*, Authorization');

/**
 * The same of the relay: any site may send an upload, and read the response. Clients of the platform announce headers of
 * its API, of which `*` does not cover `Authorization` (Fetch Standard, "CORS non-wildcard request-header name"); only
 * type and length are read.
 */
const RELAY_PREFLIGHT_HEADERS = preflightHeaders(
  RELAY_METHODS,
  'Authorization, Content-Type, Content-Length, X-Fluxer-Features, X-Client-Context, *',
);

/**
 * Creates the media listener, which does not listen yet.
 *
 * Fastify opens and closes it, and lets tests and the command line inject requests. Its router knows one route; requests
 * from the network do not pass through it, which would be a tenth of a hit.
 */
export function createServer(options: ServerOptions) {
  const { handler, explorer, relay, internal } = options;
  const limits = { ...clientLimits, ...options.limits };
  const { keepAliveTimeoutMs } = limits;
  const addressesOf = trustProxies(options.trustProxy);
  const tagFieldOf = options.tags && cacheTagFields(options.tags);
  const exchangeOptions = { ...options, addressesOf, keepAliveTimeoutMs, tagFieldOf };
  const findMethods = (target: string): string | undefined => {
    if (internal !== undefined && isInternalPath(target)) return internalMethods(target);
    if (relay?.isFor(target) === true) return RELAY_METHODS;
    return handler.methodsAt(target);
  };
  const isUpload =
    (relay ?? internal) &&
    (({ method, url = '' }: IncomingMessage): boolean =>
      (method === 'PUT' && relay?.isFor(url) === true) ||
      (internal !== undefined && isInternalPath(url)));

  const route: Work = (exchange) => {
    const { method } = exchange.request;
    if (relay?.isFor(exchange.target) === true) {
      if (method === 'PUT') return relay.handle(exchange);
      if (method !== 'OPTIONS') throw refuseMethod(RELAY_METHODS);
      return respondToPreflight(exchange, RELAY_PREFLIGHT_HEADERS);
    }
    if (method === 'GET' || method === 'HEAD') return handler.handle(exchange);
    const methods = findMethods(exchange.target);
    if (methods === undefined || method !== 'OPTIONS') throw refuseMethod(methods);
    return respondToPreflight(exchange, PREFLIGHT_HEADERS);
  };
  const routePage: Work = (exchange) => {
    const { method } = exchange.request;
    if (method === 'GET' || method === 'HEAD') return explorer?.handle(exchange);
    if (method !== 'OPTIONS') throw refuseMethod(ALLOWED_METHODS);
    // Other sites may request media, but not the explorer.
    return respondToPreflight(exchange, { allow: ALLOWED_METHODS });
  };
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    if (internal !== undefined && isInternalPath(request.url ?? '')) {
      serveInternal(internal, request, response);
    } else if (explorer?.isFor(request) === true) {
      new Exchange(request, response, exchangeOptions, EXPLORER_HEADERS).run(routePage);
    } else {
      new Exchange(request, response, exchangeOptions).run(route);
    }
  };
  const respondToInjected = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    respond(request.raw, reply.raw);
  };

  const listener = new Listener({ ...options, limits, findMethods, isUpload }, respond);
  const server = fastify({
    serverFactory: () => listener.createServer(),
    // For the scheme of the address that `listen` returns; the listener has its own.
    ...(options.tls && { https: {} }),
    logger: false,
    exposeHeadRoutes: false,
    clientErrorHandler: () => undefined, // the listener has its own
    routerOptions: {
      maxParamLength: limits.maxHeadBytes,
      querystringParser: () => ({}),
    },
    // What the router cannot decode, such as /%zz.
    frameworkErrors: (_error, request, reply) => respondToInjected(request, reply),
  });
  server.addHook('preClose', () => listener.connections.drain());
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
  server.setErrorHandler((_error, request, reply) => respondToInjected(request, reply));
  // The grammar of paths is the contract's, which parses the target as it came.
  server.route({ method: ['GET', 'HEAD'], url: '*', handler: respondToInjected });
  server.setNotFoundHandler(respondToInjected);
  return { server, countConnections: (): ConnectionCounters => listener.connections.counters };
}

function respondToPreflight(exchange: Exchange, headers: Readonly<Record<string, string>>) {
  exchange.respond(204, Object.entries({ ...exchange.commonHeaders, ...headers }).flat());
  return undefined;
}
