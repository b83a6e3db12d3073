import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Config } from '../../config/config.ts';
import { isUnreadable, MediaError, methodNotAllowed } from '../../contract/errors.ts';
import {
  parseFramesRequest,
  parseMetadataRequest,
  parseUploadRequest,
} from '../../contract/internal-request.ts';
import { createInternalMedia } from '../../pipeline/internal/internal-media.ts';
import type { MediaPipeline } from '../../pipeline/media-pipeline.ts';
import { isSiteFailure } from '../../pipeline/site-failure.ts';
import {
  createTokenCheck,
  replyToErrors,
  sendFailure,
  sendUnauthorized,
} from '../admin/replies.ts';
import { HEALTH_PATH, REQUEST_TIMEOUT_MS } from './routes.ts';

/** Minimum size of a large body in bytes. Bodies of unknown length are large. */
const LARGE_BYTES = 1024 ** 2;

/** Maximum number of concurrent large bodies: memory contains each as text, as JSON and as bytes. */
const MAX_LARGE = 2;

/** Limits unknown clients, which can connect unless the address is a loopback address. */
const MAX_CONNECTIONS = 256;

/**
 * Creates the listener for the platform's API (contract §14), without listening yet.
 *
 * @param inline adds media that a request contains, as temporary originals
 */
export function openInternalServer(
  config: Config,
  internal: NonNullable<Config['internal']>,
  pipeline: MediaPipeline,
  inline: { add(bytes: Uint8Array): { readonly key: string; readonly free: () => void } },
): FastifyInstance {
  const { token, maxBodyBytes } = internal;
  const { meter, log } = pipeline;
  const media = createInternalMedia(config, internal, pipeline, (bytes) => inline.add(bytes));
  log.info({}, 'no NSFW scanner: internal routes always report nsfw=false');
  const server = fastify({
    logger: false,
    bodyLimit: maxBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
  });
  server.server.maxConnections = MAX_CONNECTIONS;
  const isToken = createTokenCheck(token);
  let large = 0;
  const admitLarge = (reply: FastifyReply): void => {
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
    if (isLarge(request)) admitLarge(reply);
    return undefined;
  });

  server.get(HEALTH_PATH, (_request, reply) =>
    reply.type('text/plain').send(`OK attachment_signature=${config.attachments.mode}`),
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
    orInvalidBody(async () => {
      const { subject, wantsBytes } = parseMetadataRequest(body);
      if (wantsBytes && !isLarge(reply.request)) admitLarge(reply);
      return media.describe(subject, wantsBytes, signal);
    }, true),
  );
  route('/_frames', (body, signal) =>
    orInvalidBody(() => media.frames(parseFramesRequest(body), signal), true),
  );
  route('/_sniff', (body, signal) =>
    orInvalidBody(() => media.sniff(parseUploadRequest(body), signal), false),
  );
  route('/_thumbnail', async (body, signal, reply) => {
    const webp = await orInvalidBody(
      () => media.thumbnail(parseUploadRequest(body), signal),
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

/** Runs work on media. Converts errors to a 400 if the media are unreadable, not fetched, or missing and required. */
async function orInvalidBody<Result>(
  work: () => Promise<Result>,
  isRequired: boolean,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const isMissing = error instanceof MediaError && error.code === 'UNKNOWN_MEDIA';
    const isInvalid = isUnreadable(error) || isSiteFailure(error) || (isMissing && isRequired);
    if (!isInvalid) throw error;
    const message = isMissing ? 'Expected media that exist.' : 'Expected media that can be read.';
    throw new MediaError('INVALID_FORM_BODY', {
      faults: [{ path: 'media', message }],
      cause: error,
    });
  }
}
