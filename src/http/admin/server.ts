import { readFile } from 'node:fs/promises';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { parseBlockOrder, parseBlockPage } from '../../contract/block-order.ts';
import { MediaError } from '../../contract/errors.ts';
import type { TargetReading } from '../../contract/media-request.ts';
import { METADATA_PATH, parseMetadataTarget } from '../../contract/metadata.ts';
import { parsePurgeOrder } from '../../contract/purge-order.ts';
import { isTimeout } from '../../pipeline/abort.ts';
import { type BlockList, ListUnavailable } from '../../pipeline/blocks/block-list.ts';
import type { MetadataService } from '../../pipeline/metadata/metadata.ts';
import type { Log } from '../../pipeline/ports.ts';
import type { EdgePurger } from '../../pipeline/purges/edge-purger.ts';
import type { Purger } from '../../pipeline/results/purger.ts';
import type { PrometheusMeter } from '../../telemetry/metrics.ts';
import type { Readiness } from '../../telemetry/readiness.ts';
import { describeTarget } from '../../telemetry/redaction.ts';
import type { Failure } from '../body.ts';
import { createTokenCheck, sendFailure, sendUnauthorized, statusOf } from './replies.ts';

/** Parts of the admin listener. */
export interface AdminServerOptions {
  /** Secret that allows everything here. */
  readonly token: string;
  readonly purger: Purger;
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockList | undefined;
  /** Reading of the paths that are purged, which checks no signatures. */
  readonly reading: TargetReading;
  readonly metadata: MetadataService;
  /** `undefined`: there is no CDN in front that takes purges. */
  readonly edge: EdgePurger | undefined;
  /** Release of the program, with the names that `/readyz` shows. */
  readonly release: { readonly version: string; readonly commit?: string };
  readonly readiness: () => Readiness;
  readonly metrics: Pick<PrometheusMeter, 'contentType' | 'format'>;
  readonly log: Log;
}

/**
 * Paths that need no token: orchestrators have none, and learn no more than from a request for an image. The document
 * has nothing that the source has not.
 */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/openapi.json']);

/** The build's copy of `docs/openapi.json`, as seen from `src` and from `dist` alike. */
const openapiFile = new URL('../../../dist/openapi.json', import.meta.url);

/** Largest body of an order, in bytes: a thousand keys of the longest kind. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** Bound for strangers, who may connect as well if the address is not a loopback address. */
const MAX_CONNECTIONS = 64;

/** Longest path that the router decodes: each byte of a key may be escaped. */
const MAX_PATH_LENGTH = 4_096;

/** Time for a whole request to come in, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;

/** Items of an order that the log shows; it counts the others. */
const MAX_LOGGED_ITEMS = 10;

/** Pending purges that a response lists, the oldest first. */
const MAX_LISTED_PURGES = 1_000;

/**
 * Creates the listener for operators, apart from that of media; it does not listen yet.
 *
 * - `GET /healthz`: 200 as long as the process can respond at all.
 * - `GET /readyz`: 200, or 503 if requests should go elsewhere; the body of both has the reasons.
 * - `GET /openapi.json`: the interface, here and of media.
 * - With `Authorization: Bearer {token}`: `POST /purge`, see `parsePurgeOrder` for its body; `GET /purges` and
 *   `GET /purges/{id}`, where a CDN in front takes purges; `GET /metadata/{key}` for the facts of an original;
 *   `GET /metrics` for Prometheus.
 */
export function createAdminServer(options: AdminServerOptions): FastifyInstance {
  const { token, metadata, edge, release, readiness, metrics, log } = options;
  const server = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // A client that waits would hold up the stop of the service.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PATH_LENGTH },
    // What the router cannot decode, such as /%zz, for which no hook runs.
    frameworkErrors: (_error, request, reply) => {
      reply.header('cache-control', 'no-store');
      if (!mayPass(request)) sendUnauthorized(reply);
      else sendFailure(reply, request.url.startsWith(METADATA_PATH) ? wrongKey : notFound);
    },
  });
  server.server.maxConnections = MAX_CONNECTIONS;
  const isToken = createTokenCheck(token);

  const mayPass = ({ headers, method, url }: FastifyRequest): boolean => {
    const [path = ''] = url.split('?');
    if ((method === 'GET' || method === 'HEAD') && OPEN_PATHS.has(path)) return true;
    return isToken(headers.authorization);
  };

  server.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    return mayPass(request) ? undefined : sendUnauthorized(reply);
  });

  registerPurge(server, options);
  if (edge !== undefined) registerEdge(server, edge, log);
  if (options.blocks !== undefined) registerBlocks(server, options.blocks, options);

  server.get(`${METADATA_PATH}*`, async ({ raw }, reply) => {
    const question = parseMetadataTarget(raw.url ?? '', options.reading.resources);
    const leaving = new AbortController();
    reply.raw.once('close', () => leaving.abort());
    return metadata.describe(question, leaving.signal);
  });

  let openapi: string | undefined;
  server.get('/openapi.json', async (_request, reply) => {
    openapi ??= await readFile(openapiFile, 'utf8');
    return reply.type('application/json; charset=utf-8').send(openapi);
  });

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

  server.setNotFoundHandler((_request, reply) => sendFailure(reply, notFound));
  server.setErrorHandler((error, _request, reply) => {
    if (error instanceof MediaError) return sendFailure(reply, error);
    const status = statusOf(error);
    if (status < 500) {
      const message = 'The body is not what was expected: JSON, and not too long.';
      return sendFailure(reply, { status, code: 'INVALID_FORM_BODY', message });
    }
    log.error({ err: error }, 'an admin request failed');
    return sendFailure(reply, internalError);
  });
  return server;
}

/** Adds `POST /purge`; `parsePurgeOrder` documents its body. The log has each order and the client's address. */
function registerPurge(
  server: FastifyInstance,
  { purger, reading, log }: AdminServerOptions,
): void {
  server.post('/purge', async ({ body, ip: client }, reply) => {
    const order = parsePurgeOrder(body, reading);
    const asked = describeOrder(body);
    const { removed, storeFailure, edgeId, edgeFailure } = await purger.purge(order);
    if (storeFailure === undefined && edgeFailure === undefined) {
      const isPassedOn = edgeId !== undefined;
      log.info({ asked, client, removed, ...(isPassedOn && { id: edgeId }) }, 'purged');
      return isPassedOn ? reply.status(202).send({ id: edgeId }) : { removed };
    }
    if (storeFailure === undefined) {
      if (edgeFailure instanceof MediaError) return sendFailure(reply, edgeFailure);
      log.error({ asked, client, err: edgeFailure }, 'a purge cannot be journaled for the edge');
      return sendFailure(reply, journalError);
    }
    if (storeFailure instanceof MediaError) {
      log.warn({ asked, client, code: storeFailure.code }, 'a purge was rejected');
      return sendFailure(reply, storeFailure);
    }
    const isLate = isTimeout(storeFailure);
    const reason = isLate ? 'does not answer' : 'has failed';
    const details = { asked, client, err: storeFailure };
    log.error(details, `a purge was given up: the result store ${reason}`);
    return sendFailure(reply, isLate ? storeTimeout : storeError);
  });
}

/** Adds `GET /purges/{id}` and `GET /purges`: what becomes of purges at the CDN in front. */
function registerEdge(server: FastifyInstance, edge: EdgePurger, log: Log): void {
  const orFailure = async (reply: FastifyReply, look: () => Promise<object | undefined>) => {
    try {
      return (await look()) ?? sendFailure(reply, notFound);
    } catch (error) {
      log.error({ err: error }, 'the journals of purges cannot be read');
      return sendFailure(reply, journalError);
    }
  };
  server.get<{ Params: { readonly id: string } }>('/purges/:id', ({ params }, reply) =>
    orFailure(reply, () => edge.find(params.id)),
  );
  server.get('/purges', (_request, reply) =>
    orFailure(reply, async () => {
      const purges = await edge.list();
      return { count: purges.length, purges: purges.slice(0, MAX_LISTED_PURGES) };
    }),
  );
}

/** Adds the list of blocks; `parseBlockOrder` documents its bodies. The log has what was asked, without digests. */
function registerBlocks(
  server: FastifyInstance,
  blocks: BlockList,
  { reading, log }: AdminServerOptions,
): void {
  const change =
    (verb: 'block' | 'release') =>
    async ({ body, ip: client }: FastifyRequest, reply: FastifyReply) => {
      const order = parseBlockOrder(body, reading.resources);
      try {
        const generation = await blocks.change(verb, order);
        const { sha256, ...named } = body as { readonly sha256?: readonly unknown[] };
        const asked = describeOrder({ ...named, ...(sha256 && { sha256: sha256.length }) });
        log.info({ verb, asked, client, generation }, 'the list of blocks has changed');
        return { generation };
      } catch (error) {
        if (!(error instanceof ListUnavailable)) throw error;
        return sendFailure(reply, listUnavailable);
      }
    };
  server.post('/blocks', change('block'));
  server.delete('/blocks', change('release'));
  server.get('/blocks', async ({ query }, reply) => {
    const page = parseBlockPage(query);
    try {
      return await blocks.readPage(page);
    } catch (error) {
      if (!(error instanceof ListUnavailable)) throw error;
      return sendFailure(reply, listUnavailable);
    }
  });
}

/** Returns an order in the words of the API, cut to what a line of the log can hold. */
function describeOrder(body: unknown): object {
  const described: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body ?? {})) {
    const items = [value].flat();
    const logged = items.slice(0, MAX_LOGGED_ITEMS).map((item) => describeTarget(String(item)));
    described[name] = Array.isArray(value) ? logged : logged[0];
    if (items.length > logged.length) described.more = items.length - logged.length;
  }
  return described;
}

const internalError = new MediaError('INTERNAL_ERROR');
const notFound = new MediaError('NOT_FOUND');
const wrongKey = new MediaError('INVALID_FORM_BODY', {
  faults: [{ path: 'key', message: 'Expected valid percent-encoded UTF-8.' }],
});

const listUnavailable = {
  status: 503,
  code: 'BLOCKLIST_UNAVAILABLE',
  message: 'The list of blocks cannot be read or written. The last one holds.',
} as const satisfies Failure;

const storeTimeout = {
  status: 504,
  code: 'STORE_TIMEOUT',
  message: 'The store has not answered in time. The memory is purged; purge again later.',
} as const satisfies Failure;

const storeError = {
  status: 502,
  code: 'STORE_ERROR',
  message: 'The store has failed. The memory is purged; purge again when the store is mended.',
} as const satisfies Failure;

const journalError = {
  status: 503,
  code: 'JOURNAL_ERROR',
  message:
    'The journal of purges cannot be read or written. The edge does not get this purge; purge again later.',
} as const satisfies Failure;
