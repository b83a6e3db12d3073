import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Config } from '../config/config.ts';
import type { CdnTags } from '../contract/cdn-tags.ts';
import { trustProxies } from './client-address.ts';
import { type ClientLimits, clientLimits } from './connections/connections.ts';
import { Listener } from './connections/listener.ts';
import { Exchange } from './exchange.ts';
import { EXPLORER_HEADERS, type ExplorerHandler } from './explorer/handler.ts';
import { refuseMethod } from './failure.ts';
import { ALLOWED_METHODS, cacheTagFields } from './head.ts';
import { internalMethods, isInternalPath, serveInternal } from './internal/routes.ts';
import type { MediaHandler } from './media/handler.ts';
import { RELAY_METHODS, type RelayHandler } from './relay/handler.ts';
import type { Observers } from './request-state.ts';

type RequestHandler = (exchange: Exchange) => Promise<void> | undefined;

/** Handlers of the media listener. The paths of an omitted handler are unknown. */
interface Handlers {
  readonly media: MediaHandler;
  readonly explorer: ExplorerHandler | undefined;
  readonly relay: RelayHandler | undefined;
  /** Routes of the platform's API, unless they have a separate listener. */
  readonly internal: FastifyInstance | undefined;
}

/** Headers of the response to a CORS preflight for media: any site may send any header. */
const PREFLIGHT_HEADERS = preflightHeaders(ALLOWED_METHODS, '*, Authorization');

/**
 * The same for uploads, with the headers that clients of the platform send to its API. `Authorization` is listed because
 * `*` does not cover it (Fetch Standard, "CORS non-wildcard request-header name").
 */
const RELAY_PREFLIGHT_HEADERS = preflightHeaders(
  RELAY_METHODS,
  'Authorization, Content-Type, Content-Length, X-Fluxer-Features, X-Client-Context, *',
);

/**
 * Creates the media listener, without listening yet. Fastify opens and closes it, and lets tests and the command line
 * inject requests. Requests from the network bypass its router, which takes a tenth of the time of a hit.
 *
 * @param tags tags for the CDN in front; omit to send none
 * @param changedLimits limits that a test shortens
 */
export function createServer(
  http: Config['http'],
  { media, explorer, relay, internal }: Handlers,
  observers: Omit<Observers, 'listAddresses'>,
  tags: CdnTags | undefined,
  changedLimits: Partial<ClientLimits>,
) {
  const limits = { ...clientLimits, ...changedLimits };
  const shared = {
    ...observers,
    http,
    keepAliveTimeoutMs: limits.keepAliveTimeoutMs,
    listAddresses: trustProxies(http.trustProxy),
    tagFieldOf: tags && cacheTagFields(tags),
  };
  const findMethods = (target: string): string | undefined => {
    if (internal !== undefined && isInternalPath(target)) return internalMethods(target);
    if (relay?.isFor(target) === true) return RELAY_METHODS;
    return media.knowsPath(target) ? ALLOWED_METHODS : undefined;
  };
  const isUpload = ({ method, url = '' }: IncomingMessage): boolean =>
    (method === 'PUT' && relay?.isFor(url) === true) ||
    (internal !== undefined && isInternalPath(url));

  const route: RequestHandler = (exchange) => {
    const { method } = exchange.request;
    if (relay?.isFor(exchange.target) === true) {
      if (method === 'PUT') return relay.handle(exchange);
      if (method !== 'OPTIONS') throw refuseMethod(RELAY_METHODS);
      return respondToPreflight(exchange, RELAY_PREFLIGHT_HEADERS);
    }
    if (method === 'GET' || method === 'HEAD') return media.handle(exchange);
    const methods = findMethods(exchange.target);
    if (methods === undefined || method !== 'OPTIONS') throw refuseMethod(methods);
    return respondToPreflight(exchange, PREFLIGHT_HEADERS);
  };
  const routePage: RequestHandler = (exchange) => {
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
      run(new Exchange(request, response, shared, EXPLORER_HEADERS), routePage);
    } else {
      run(new Exchange(request, response, shared), route);
    }
  };
  const respondToInjected = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    respond(request.raw, reply.raw);
  };

  const hasUploads = relay !== undefined || internal !== undefined;
  const listener = new Listener(http, limits, observers, {
    handle: respond,
    findMethods,
    isUpload: hasUploads ? isUpload : undefined,
  });
  const server = fastify({
    serverFactory: () => listener.createServer(),
    // Determines the scheme of the address that `listen` returns.
    ...(http.tls && { https: {} }),
    logger: false,
    exposeHeadRoutes: false,
    clientErrorHandler: () => undefined, // `Listener` handles these errors
    routerOptions: {
      maxParamLength: limits.maxHeadBytes,
      querystringParser: () => ({}),
    },
    // Targets that the router cannot decode, such as /%zz.
    frameworkErrors: (_error, request, reply) => respondToInjected(request, reply),
  });
  server.addHook('preClose', () => listener.connections.drain());
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
  server.setErrorHandler((_error, request, reply) => respondToInjected(request, reply));
  // The contract parses paths itself, from the undecoded target.
  server.route({ method: ['GET', 'HEAD'], url: '*', handler: respondToInjected });
  server.setNotFoundHandler(respondToInjected);
  return { server, countConnections: () => listener.connections.counters };
}

function run(exchange: Exchange, handle: RequestHandler): void {
  try {
    handle(exchange)?.catch((error: unknown) => exchange.fail(error));
  } catch (error) {
    exchange.fail(error);
  }
}

function preflightHeaders(methods: string, headers: string) {
  return {
    allow: methods,
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headers,
    'access-control-max-age': '86400',
  };
}

function respondToPreflight(exchange: Exchange, headers: Readonly<Record<string, string>>) {
  exchange.respond(204, Object.entries({ ...exchange.commonHeaders, ...headers }).flat());
  return undefined;
}
