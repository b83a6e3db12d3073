import { createHash, timingSafeEqual } from 'node:crypto';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import { parsePurgeOrder } from '../../contract/purge-order.ts';
import { type Log, StoreStalled } from '../../pipeline/ports.ts';
import type { Purger } from '../../pipeline/results/purger.ts';
import type { Readiness } from '../../telemetry/readiness.ts';
import { OPENAPI_PATH, registerOpenapi } from './openapi-route.ts';

interface AdminServerOptions {
  /** Whoever has it may do everything here. */
  readonly token: string;
  readonly purger: Purger;
  /** Which release of the program runs, with the names that `/readyz` shows. */
  readonly release: { readonly version: string; readonly commit?: string };
  readonly readiness: () => Readiness;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What was counted, as text. */
interface Metrics {
  readonly contentType: string;
  format(): Promise<string>;
}

/** Without a token: orchestrators have none, and learn what a request for an image would tell anyone. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', OPENAPI_PATH]);

/** Largest body of an order, in bytes: a thousand keys of the longest kind. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** Strangers may come, too, where the address is not the machine's own. */
const MAX_CONNECTIONS = 64;

/** Time for a whole request to come in, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * The listener for those who run the service, apart from that of the media: it does not listen yet.
 *
 * - `GET /healthz`: 200 as long as the process can answer at all.
 * - `GET /readyz`: 200, or 503 if requests should not come here; the body has the reasons, of a 200 as well.
 * - `GET /openapi.json`: what can be asked, here and of media.
 * - With `Authorization: Bearer {token}`: `POST /purge`, see `parsePurgeOrder` for its body; `GET /metrics`
 *   for Prometheus.
 */
export function createAdminServer(options: AdminServerOptions): FastifyInstance {
  const { token, purger, release, readiness, metrics, log } = options;
  const server = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Who waits for it would hold up the stop of the service.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 100 },
    // Of what the router cannot decode, such as /%zz: no hook hears of it.
    frameworkErrors: (_error, request, reply) => {
      reply.header('cache-control', 'no-store');
      if (mayPass(request)) sendNotFound(reply);
      else sendUnauthorized(reply);
    },
  });
  server.server.maxConnections = MAX_CONNECTIONS;
  const expected = digest(token);

  const mayPass = ({ headers, method, url }: FastifyRequest): boolean => {
    const [path = ''] = url.split('?');
    if ((method === 'GET' || method === 'HEAD') && OPEN_PATHS.has(path)) return true;
    return timingSafeEqual(digest(bearerOf(headers.authorization)), expected);
  };

  server.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    return mayPass(request) ? undefined : sendUnauthorized(reply);
  });

  server.post('/purge', async ({ body }) => {
    const order = parsePurgeOrder(body);
    const removed = await purger.purge(order);
    log.info({ order: order.kind, removed }, 'purged');
    return { removed };
  });

  registerOpenapi(server);

  server.get('/healthz', async () => ({ status: 'alive' }));

  server.get('/readyz', async (_request, reply) => {
    const judgement = readiness();
    return reply
      .status(judgement.status === 'not ready' ? 503 : 200)
      .send({ ...judgement, ...release });
  });

  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.format()),
  );

  server.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  server.setErrorHandler((error, _request, reply) => {
    if (error instanceof MediaError) {
      const { code, message, faults } = error;
      const isForm = code === 'INVALID_FORM_BODY';
      return reply.status(error.status).send({ code, message, ...(isForm && { errors: faults }) });
    }
    if (error instanceof StoreStalled) {
      log.error({ err: error }, 'a purge was given up: the result store does not answer');
      const message =
        'The store has not answered in time. The memory is purged; purge again later.';
      return reply.status(504).send({ code: 'STORE_TIMEOUT', message });
    }
    const status = statusOf(error);
    if (status < 500) {
      const message = 'The body is not what was expected: JSON, and not too long.';
      return reply.status(status).send({ code: 'INVALID_FORM_BODY', message, errors: [] });
    }
    log.error({ err: error }, 'an order of the administrator has failed');
    return reply.status(500).send({ code: 'INTERNAL_ERROR', message: 'The service has failed.' });
  });
  return server;
}

/** The token that was sent; the scheme's case does not matter (RFC 9110 §11.1). Empty where there is none. */
function bearerOf(authorization = ''): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}

function sendUnauthorized(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  return reply.status(401).send({ code: 'UNAUTHORIZED', message: 'A valid token is needed.' });
}

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply.status(404).send({ code: 'NOT_FOUND', message: 'There is no such path.' });
}

/** So that the comparison takes as long whatever was sent, its length included. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Of Fastify's own refusals: no JSON, another media type, too long. */
function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' ? status : 500;
}
