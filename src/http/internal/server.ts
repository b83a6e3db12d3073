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

/** Bodies above this many bytes are large, and so are those of unknown length. */
const LARGE_BYTES = 1024 ** 2;

/** Maximum number of concurrent large bodies: each is in memory as text, as JSON and as bytes. */
const MAX_LARGE = 2;

/** Bound for unknown clients, which may connect as well unless the address is a loopback address. */
const MAX_CONNECTIONS = 256;

/**
 * Creates the listener for the platform's API (contract §14), which does not listen yet.
 *
 * - `GET /_health`: 200 without a token.
 * - With `Authorization: Bearer {token}`, `POST /_metadata`, `/_sniff`, `/_thumbnail` and `/_frames`.
 *
 * @param inline source of media that arrive with a request
 */
export function openInternalServer(
  config: Config,
  internal: NonNullable<Config['internal']>,
  pipeline: MediaPipeline,
  inline: { add(bytes: Uint8Array): { readonly key: string; readonly release: () => void } },
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
    unreadableIs400(async () => {
      const { subject, wantsBytes } = parseMetadataRequest(body);
      if (wantsBytes && !isLarge(reply.request)) admitLarge(reply);
      return media.describe(subject, wantsBytes, signal);
    }, true),
  );
  route('/_frames', (body, signal) =>
    unreadableIs400(() => media.frames(parseFramesRequest(body), signal), true),
  );
  route('/_sniff', (body, signal) =>
    unreadableIs400(() => media.sniff(parseUploadRequest(body), signal), false),
  );
  route('/_thumbnail', async (body, signal, reply) => {
    const webp = await unreadableIs400(
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

/** Runs the work; a 400 for media that cannot be read or fetched, or that are missing (`isMissingToo`). */
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
