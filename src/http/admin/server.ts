import { readFile } from 'node:fs/promises';
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify';
import type { Config } from '../../config/config.ts';
import { parseBlockQuery, parseBlockRequest } from '../../contract/block-request.ts';
import { MediaError } from '../../contract/errors.ts';
import { METADATA_PATH, parseMetadataTarget } from '../../contract/metadata.ts';
import type { Resources } from '../../contract/resources.ts';
import { readExternalPath } from '../../contract/signing/external-path.ts';
import type { BlockList } from '../../pipeline/blocks/block-list.ts';
import type { Log } from '../../pipeline/ports.ts';
import type { PrometheusMeter } from '../../telemetry/metrics.ts';
import { checkReadiness, probeStorage, type ServiceState } from '../../telemetry/readiness.ts';
import { registerPurge, registerPurges } from './purges.ts';
import {
  createTokenCheck,
  logFieldOf,
  notFound,
  replyToErrors,
  sendFailure,
  sendUnauthorized,
} from './replies.ts';

/** Paths without a token, which orchestrators do not have. They reveal no more than media and the source code do. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/openapi.json']);

/** The build's copy of `docs/openapi.json`; the path is the same from the compiled file and from its source. */
const openapiFile = new URL('../../../dist/openapi.json', import.meta.url);

/** Maximum body of a request in bytes: a thousand of the longest keys. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** Limits unknown clients, which can connect unless the address is a loopback address. */
const MAX_CONNECTIONS = 64;

/** Maximum length of a path, in which each byte of a key may be percent-encoded. */
const MAX_PATH_LENGTH = 4_096;

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Creates the listener for operators, without listening yet; docs/api.md documents its paths. `/readyz` and `/metrics`
 * probe the storage in the background, for the next request.
 */
export function createAdminServer(
  { parseOptions, external, release }: Config,
  { token }: NonNullable<Config['admin']>,
  state: ServiceState,
  metrics: Pick<PrometheusMeter, 'contentType' | 'format'>,
  log: Log,
): FastifyInstance {
  const { pipeline, blocks, cdn } = state;
  const { purger, metadata, details } = pipeline;
  const { resources } = parseOptions;
  const server = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Open connections would delay the stop of the service.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PATH_LENGTH },
    // Targets that the router cannot decode, such as /%zz. No hook runs for them.
    frameworkErrors: (_error, request, reply) => {
      reply.header('cache-control', 'no-store');
      if (!isAuthorized(request)) sendUnauthorized(reply);
      else sendFailure(reply, request.url.startsWith(METADATA_PATH) ? invalidKey : notFound);
    },
  });
  server.server.maxConnections = MAX_CONNECTIONS;
  const isToken = createTokenCheck(token);

  const isAuthorized = ({ headers, method, url }: FastifyRequest): boolean => {
    const [path = ''] = url.split('?');
    if ((method === 'GET' || method === 'HEAD') && OPEN_PATHS.has(path)) return true;
    return isToken(headers.authorization);
  };

  server.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    return isAuthorized(request) ? undefined : sendUnauthorized(reply);
  });

  // Operators need no signature to purge a URL.
  const readExternal = (path: string) => readExternalPath(path, external?.pathEncoding);
  registerPurge(server, purger, { ...parseOptions, readExternal }, log);
  if (cdn !== undefined) registerPurges(server, cdn, log);
  else registerDisabled(server, ['/purges', '/purges/:id'], noCdn);
  if (blocks !== undefined) registerBlocks(server, blocks, resources, log);
  else registerDisabled(server, ['/blocks'], noBlocks);

  server.get(`${METADATA_PATH}*`, async ({ raw }, reply) => {
    const request = parseMetadataTarget(raw.url ?? '', resources);
    const leaving = new AbortController();
    reply.raw.once('close', () => leaving.abort());
    const described = await metadata.describe(request, leaving.signal);
    const etag = described.etag?.slice(1, -1) ?? '';
    const removal = await details.find(request, etag, 'removal', leaving.signal);
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
    probeStorage(state);
    const { status, reasons } = checkReadiness(state);
    return reply.status(status === 'not ready' ? 503 : 200).send({ status, reasons, ...release });
  });

  server.get('/metrics', async (_request, reply) => {
    probeStorage(state);
    return reply.type(metrics.contentType).send(await metrics.format());
  });

  replyToErrors(server, 'an admin request failed', log);
  return server;
}

const noBlocks = new MediaError('NOT_FOUND', { message: 'Blocking is off: set BLOCKLIST.' });
const noCdn = new MediaError('NOT_FOUND', {
  message: 'No CDN in front is configured: set EDGE.',
});

function registerDisabled(
  server: FastifyInstance,
  paths: readonly string[],
  failure: MediaError,
): void {
  for (const path of paths) server.all(path, (_request, reply) => sendFailure(reply, failure));
}

/** Adds `/blocks`; `parseBlockRequest` parses its bodies. Logs each change, without digests. */
function registerBlocks(
  server: FastifyInstance,
  blocks: BlockList,
  resources: Resources,
  log: Log,
): void {
  const change =
    (verb: 'block' | 'release') =>
    async ({ body, ip: client }: FastifyRequest) => {
      const generation = await blocks.change(verb, parseBlockRequest(body, resources));
      const { sha256, ...named } = body as { readonly sha256?: readonly unknown[] };
      const logField = logFieldOf({ ...named, ...(sha256 && { sha256: sha256.length }) });
      log.info({ verb, ...logField, client, generation }, 'block list changed');
      return { generation };
    };
  server.post('/blocks', change('block'));
  server.delete('/blocks', change('release'));
  server.get('/blocks', async ({ query }) => blocks.read(parseBlockQuery(query, resources)));
}

const invalidKey = new MediaError('INVALID_FORM_BODY', {
  faults: [{ path: 'key', message: 'Expected valid percent-encoded UTF-8.' }],
});
