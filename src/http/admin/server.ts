import { readFile } from 'node:fs/promises';
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify';
import { parseBlockOrder, parseBlockQuery } from '../../contract/block-order.ts';
import { MediaError } from '../../contract/errors.ts';
import { METADATA_PATH, parseMetadataTarget } from '../../contract/metadata.ts';
import type { BlockList } from '../../pipeline/blocks/block-list.ts';
import type { CdnPurger } from '../../pipeline/cdn/cdn-purger.ts';
import type { MetadataService } from '../../pipeline/metadata/metadata.ts';
import type { FactStore } from '../../pipeline/originals/fact-store.ts';
import type { PrometheusMeter } from '../../telemetry/metrics.ts';
import type { Readiness } from '../../telemetry/readiness.ts';
import { type PurgeParts, registerPurge, registerPurges } from './purges.ts';
import {
  createTokenCheck,
  describeOrder,
  notFound,
  replyToErrors,
  sendFailure,
  sendUnauthorized,
} from './replies.ts';

/** Parts of the admin listener. */
export interface AdminServerOptions extends PurgeParts {
  /** Secret that allows everything here. */
  readonly token: string;
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockList | undefined;
  readonly metadata: MetadataService;
  readonly facts: Pick<FactStore, 'find'>;
  /** `undefined`: there is no CDN in front that takes purges. */
  readonly cdn: CdnPurger | undefined;
  /** Release of the program, with the names that `/readyz` shows. */
  readonly release: { readonly version: string; readonly commit?: string };
  readonly readiness: () => Readiness;
  readonly metrics: Pick<PrometheusMeter, 'contentType' | 'format'>;
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
  const { token, metadata, facts, blocks, cdn, release, readiness, metrics, log } = options;
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
  if (cdn !== undefined) registerPurges(server, cdn, log);
  else registerDisabled(server, ['/purges', '/purges/:id'], noCdn);
  if (blocks !== undefined) registerBlocks(server, blocks, options);
  else registerDisabled(server, ['/blocks'], noBlocks);

  server.get(`${METADATA_PATH}*`, async ({ raw }, reply) => {
    const question = parseMetadataTarget(raw.url ?? '', options.reading.resources);
    const leaving = new AbortController();
    reply.raw.once('close', () => leaving.abort());
    const described = await metadata.describe(question, leaving.signal);
    const etag = described.etag?.slice(1, -1) ?? '';
    const removal = await facts.find(question, etag, 'removal', leaving.signal);
    if (removal !== undefined) reply.header('x-metadata', removal);
    return described;
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

  replyToErrors(server, 'an admin request failed', log);
  return server;
}

const noBlocks = new MediaError('NOT_FOUND', { message: 'Blocking is off: set BLOCKLIST.' });
const noCdn = new MediaError('NOT_FOUND', {
  message: 'No CDN in front is configured: set EDGE.',
});

/** Adds routes that are off, whose 404 names the setting that enables them. */
function registerDisabled(
  server: FastifyInstance,
  paths: readonly string[],
  failure: MediaError,
): void {
  for (const path of paths) server.all(path, (_request, reply) => sendFailure(reply, failure));
}

/** Adds the list of blocks; `parseBlockOrder` documents its bodies. The log has what was asked, without digests. */
function registerBlocks(
  server: FastifyInstance,
  blocks: BlockList,
  { reading, log }: AdminServerOptions,
): void {
  const change =
    (verb: 'block' | 'release') =>
    async ({ body, ip: client }: FastifyRequest) => {
      const generation = await blocks.change(verb, parseBlockOrder(body, reading.resources));
      const { sha256, ...named } = body as { readonly sha256?: readonly unknown[] };
      const asked = describeOrder({ ...named, ...(sha256 && { sha256: sha256.length }) });
      log.info({ verb, asked, client, generation }, 'the list of blocks has changed');
      return { generation };
    };
  server.post('/blocks', change('block'));
  server.delete('/blocks', change('release'));
  server.get('/blocks', async ({ query }) =>
    blocks.read(parseBlockQuery(query, reading.resources)),
  );
}

const wrongKey = new MediaError('INVALID_FORM_BODY', {
  faults: [{ path: 'key', message: 'Expected valid percent-encoded UTF-8.' }],
});
