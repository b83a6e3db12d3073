import type { IncomingMessage } from 'node:http';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { ConnectionCounters } from '../telemetry/readiness.ts';
import { type ClientLimits, clientLimits } from './edge/limits.ts';
import { Listener, type ListenerOptions } from './edge/listener.ts';
import { refuseMethod } from './error-response.ts';
import { Exchange, type ExchangeOptions, type Work } from './exchange.ts';
import { EXPLORER_HEADERS, type ExplorerHandler } from './explorer/explorer-handler.ts';
import type { MediaHandler } from './media/media-handler.ts';
import {
  RELAY_METHODS,
  RELAY_PREFLIGHT_HEADERS,
  type RelayHandler,
} from './relay/relay-handler.ts';
import { ALLOWED_METHODS, PREFLIGHT_HEADERS } from './response-headers.ts';

interface ServerOptions
  extends Omit<ListenerOptions, 'limits' | 'findMethods' | 'isUpload'>,
    ExchangeOptions {
  readonly handler: MediaHandler;
  /** Responds on the paths of the explorer; without it, there are none. */
  readonly explorer?: ExplorerHandler | undefined;
  /** Stores uploads; without it, there are none. */
  readonly relay?: RelayHandler | undefined;
  /** Proxies that may tell where a request came from; see Fastify's `trustProxy`. */
  readonly trustProxy: boolean | string[];
  /** Other limits than the usual ones, for tests. */
  readonly limits?: Partial<ClientLimits>;
}

type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => void;

/** Creates the media listener, with a look at its connections; it does not listen yet. */
export function createServer(options: ServerOptions) {
  const { handler, explorer, relay } = options;
  const limits = { ...clientLimits, ...options.limits };
  const findMethods = (target: string): string | undefined => {
    if (relay?.isFor(target) === true) return RELAY_METHODS;
    return handler.knowsPath(target) ? ALLOWED_METHODS : undefined;
  };
  const isUpload =
    relay &&
    (({ method, url = '' }: IncomingMessage): boolean => method === 'PUT' && relay.isFor(url));
  let listener: Listener | undefined;

  const respond: Work = (exchange) => {
    const { method } = exchange.request;
    if (relay?.isFor(exchange.target) === true) return respondToUpload(exchange, relay);
    const page = explorer?.isFor(exchange.request) === true ? explorer : undefined;
    if (page !== undefined) exchange.commonHeaders = EXPLORER_HEADERS;
    if (method === 'GET' || method === 'HEAD') return (page ?? handler).handle(exchange);
    const methods = page === undefined ? findMethods(exchange.target) : ALLOWED_METHODS;
    if (methods === undefined || method !== 'OPTIONS') throw refuseMethod(methods);
    // Other sites may ask for media, and for nothing of the explorer.
    const preflight = page === undefined ? PREFLIGHT_HEADERS : { allow: ALLOWED_METHODS };
    exchange.respond(204, Object.entries({ ...exchange.commonHeaders, ...preflight }).flat());
    return undefined;
  };
  const respondToAny: RouteHandler = (request, reply) =>
    new Exchange(request, reply, options).run(respond);

  const server = fastify({
    serverFactory: (handle) => {
      listener ??= new Listener({ ...options, limits, findMethods, isUpload }, handle);
      return listener.createServer();
    },
    // For the scheme of the address that `listen` returns; the listener has its own.
    ...(options.tls && { https: {} }),
    logger: false,
    genReqId: () => '', // made where it is needed
    trustProxy: options.trustProxy,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    clientErrorHandler: () => undefined, // the listener's own is there
    routerOptions: {
      maxParamLength: limits.maxHeadBytes,
      querystringParser: () => ({}),
    },
    // Of what the router cannot decode, such as /%zz.
    frameworkErrors: (_error, request, reply) => respondToAny(request, reply),
  });
  server.addHook('preClose', async () => listener?.connections.drain());
  // Bodies are not for Fastify: the listener reads them over. It refuses no type either.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
  server.setErrorHandler((_error, request, reply) => respondToAny(request, reply));
  // The grammar of paths is the contract's, which reads the target as it came.
  server.route({ method: ['GET', 'HEAD'], url: '*', handler: respondToAny });
  server.setNotFoundHandler(respondToAny);
  return {
    server,
    countConnections: (): ConnectionCounters => {
      if (listener === undefined) throw new Error('Fastify has made no listener.');
      return listener.connections.counters;
    },
  };
}

function respondToUpload(exchange: Exchange, relay: RelayHandler): Promise<void> | undefined {
  const { method } = exchange.request;
  if (method === 'PUT') return relay.handle(exchange);
  if (method !== 'OPTIONS') throw refuseMethod(RELAY_METHODS);
  const headers = { ...exchange.commonHeaders, ...RELAY_PREFLIGHT_HEADERS };
  exchange.respond(204, Object.entries(headers).flat());
  return undefined;
}
