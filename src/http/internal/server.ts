import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Config } from '../../config/config.ts';
import { isUnreadable, MediaError, methodNotAllowed } from '../../contract/errors.ts';
import {
  parseFramesOrder,
  parseMetadataOrder,
  parseUploadOrder,
} from '../../contract/internal-request.ts';
import { verifyExternalPath } from '../../contract/signing/external-path.ts';
import type { BlockGuard } from '../../pipeline/blocks/block-guard.ts';
import { createInternalMedia } from '../../pipeline/internal/internal-media.ts';
import type { MediaPipeline } from '../../pipeline/media-pipeline.ts';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import { isSiteFailure } from '../../pipeline/site-failure.ts';
import {
  createTokenCheck,
  replyToErrors,
  sendFailure,
  sendUnauthorized,
} from '../admin/replies.ts';
import { HEALTH_PATH, REQUEST_TIMEOUT_MS } from './routes.ts';

interface InternalServerParts {
  readonly pipeline: MediaPipeline;
  /** Source of media that arrive with a request. */
  readonly inline: {
    add(bytes: Uint8Array): { readonly key: string; readonly release: () => void };
  };
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  readonly clock: Clock;
  readonly meter: Pick<Meter, 'count'>;
  readonly log: Log;
}

/** Bodies above this many bytes are large, and so are those of unknown length. */
const LARGE_BYTES = 1024 ** 2;

/** Large bodies at a time: each is in memory as text, as JSON and as bytes. */
const MAX_LARGE = 2;

/** Bound for strangers, who may connect as well if the address is not a loopback address. */
const MAX_CONNECTIONS = 256;

/**
 * Creates the listener for the platform's API (contract §14), apart from those of media and of operators; it does not
 * listen yet.
 *
 * - `GET /_health`: 200 without a token.
 * - With `Authorization: Bearer {token}`, `POST /_metadata`, `/_sniff`, `/_thumbnail` and `/_frames`.
 */
export function openInternalServer(
  { reading, external, uploads, attachments }: Config,
  { token, maxBodyBytes, bucket }: NonNullable<Config['internal']>,
  { pipeline, inline, blocks, clock, meter, log }: InternalServerParts,
): FastifyInstance {
  const namespaces = new Map<string, 'uploads' | undefined>();
  if (bucket !== undefined) namespaces.set(bucket, undefined);
  if (uploads !== undefined) namespaces.set(uploads.bucket, 'uploads');
  const media = createInternalMedia({
    pipeline,
    addInline: (bytes) => inline.add(bytes),
    namespaces,
    uploadsBucket: uploads?.bucket,
    reading: {
      ...reading,
      readExternal:
        external && ((path) => verifyExternalPath(path, external.keys, external.pathEncoding)),
    },
    maxInlineBytes: Math.floor((maxBodyBytes * 3) / 4),
    blocks,
    clock,
  });
  log.info({}, 'Media are not scanned: the internal routes report all of them as not NSFW');
  const server = fastify({
    logger: false,
    bodyLimit: maxBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
  });
  server.server.maxConnections = MAX_CONNECTIONS;
  const isToken = createTokenCheck(token);
  let large = 0;
  const enterLarge = (reply: FastifyReply): void => {
    if (large >= MAX_LARGE) {
      meter.count('refusals', 'requests');
      throw new MediaError('OVERLOADED', { bottleneck: 'requests', retryAfterSeconds: 1 });
    }
    large += 1;
    reply.raw.once('close', () => {
      large -= 1;
    });
  };

  server.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const isHealth = request.method === 'GET' && request.url.split('?')[0] === HEALTH_PATH;
    if (!isHealth && !isToken(request.headers.authorization)) return sendUnauthorized(reply);
    if (isLarge(request)) enterLarge(reply);
    return undefined;
  });

  server.get(HEALTH_PATH, (_request, reply) =>
    reply.type('text/plain').send(`OK attachment_signature=${attachments.mode}`),
  );

  const route = (
    path: string,
    respond: (body: unknown, signal: AbortSignal, reply: FastifyReply) => Promise<unknown>,
  ): void => {
    server.post(path, async ({ body }, reply) => {
      const leaving = new AbortController();
      reply.raw.once('close', () => leaving.abort());
      return respond(body, leaving.signal, reply);
    });
    const method = ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    server.route({
      method,
      url: path,
      handler: (_request, reply) => sendFailure(reply, postOnly),
    });
  };
  route('/_metadata', (body, signal, reply) =>
    unreadableIs400(async () => {
      const { subject, wantsBytes } = parseMetadataOrder(body);
      if (wantsBytes && !isLarge(reply.request)) enterLarge(reply);
      return media.describe(subject, wantsBytes, signal);
    }, true),
  );
  route('/_frames', (body, signal) =>
    unreadableIs400(() => media.frames(parseFramesOrder(body), signal), true),
  );
  route('/_sniff', (body, signal) =>
    unreadableIs400(() => media.sniff(parseUploadOrder(body), signal), false),
  );
  route('/_thumbnail', async (body, signal, reply) => {
    const webp = await unreadableIs400(
      () => media.thumbnail(parseUploadOrder(body), signal),
      false,
    );
    return reply.type('image/webp').send(Buffer.from(webp));
  });

  replyToErrors(server, 'an internal request failed', log);
  return server;
}

const postOnly = methodNotAllowed('POST');

function isLarge({ method, headers }: FastifyRequest): boolean {
  return method === 'POST' && !(Number(headers['content-length']) <= LARGE_BYTES);
}

/** Runs the work; media that cannot be read, that a site fails to give, or are missing (`isMissingToo`) are a 400. */
async function unreadableIs400<Result>(
  work: () => Promise<Result>,
  isMissingToo: boolean,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const isMissing = error instanceof MediaError && error.code === 'UNKNOWN_MEDIA';
    const isFault = isUnreadable(error) || isSiteFailure(error);
    if (!isFault && !(isMissing && isMissingToo)) throw error;
    const message = isMissing ? 'Expected media that exist.' : 'Expected media that can be read.';
    throw new MediaError('INVALID_FORM_BODY', {
      faults: [{ path: 'media', message }],
      cause: error,
    });
  }
}
