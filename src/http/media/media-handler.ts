import type { FastifyReply, FastifyRequest } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import {
  type MediaRequest,
  parseTarget,
  type RequestTarget,
} from '../../contract/media-request.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { PassthroughService } from '../../pipeline/originals/passthrough.ts';
import type { RequestTrace } from '../../pipeline/request-trace.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import type { Validators } from '../../pipeline/validators.ts';
import {
  defaultAvatarCacheControl,
  type MaxAgeSeconds,
  mediaCacheControl,
} from './cache-policy.ts';
import { isNotModified } from './conditional.ts';
import { formatMediaDisposition } from './media-disposition.ts';
import { sendNotModified, sendRepresentation } from './representation.ts';
import type { TargetMemory } from './target-memory.ts';

/** What the routes stand on. */
export interface MediaHandlerParts {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  /** Those that were hits are noted here. */
  readonly targets: TargetMemory;
  readonly maxAgeSeconds: MaxAgeSeconds;
}

/** What belongs to one request alone. */
export interface RequestContext {
  readonly trace: RequestTrace;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  /** Is told what is asked for, as soon as that is known. */
  readonly noteTarget: (target: RequestTarget) => void;
}

/** Answers GET and HEAD of every path of the contract. */
export class MediaHandler {
  readonly #parts: MediaHandlerParts;

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
  }

  /** @throws MediaError of any room; `context.signal.reason` when the client has gone */
  async handle(
    request: FastifyRequest,
    reply: FastifyReply,
    context: RequestContext,
  ): Promise<FastifyReply> {
    const target = parseTarget(request.originalUrl);
    context.noteTarget(target);
    if (target.kind === 'default avatar') {
      return this.#sendDefaultAvatar(request, reply, target.index, context);
    }
    if (target.request.isVerbatim) {
      return this.#sendVerbatim(request, reply, target.request, context);
    }
    return this.#sendMedia(request, reply, target.request, context);
  }

  async #sendMedia(
    request: FastifyRequest,
    reply: FastifyReply,
    media: MediaRequest,
    context: RequestContext,
  ): Promise<FastifyReply> {
    const cacheControl = mediaCacheControl(this.#parts.maxAgeSeconds);
    const served = await this.#parts.media.serve(media, {
      ...context,
      isCurrent: (validators, isMade) => isCurrent(request, validators, isMade),
    });
    // What was asked for once is mostly not asked for again.
    if (context.trace.outcome?.kind === 'hit') {
      this.#parts.targets.note(request.originalUrl, media);
    }
    if (served.kind === 'current') return sendNotModified(reply, served.validators, cacheControl);
    const { body, mimeType } = served.result;
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    return sendRepresentation(request, reply, {
      contentType: mimeType,
      contentDisposition: formatMediaDisposition(media, mimeType),
      cacheControl,
      validators: served.result,
      sizeBytes: bytes.length,
      open: (first, last) => bytes.subarray(first, last + 1),
    });
  }

  async #sendVerbatim(
    request: FastifyRequest,
    reply: FastifyReply,
    media: MediaRequest,
    context: RequestContext,
  ): Promise<FastifyReply> {
    const cacheControl = mediaCacheControl(this.#parts.maxAgeSeconds);
    const { headers, method } = request;
    const isConditional =
      headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
    const original = await this.#parts.passthrough.open(media, {
      ...context,
      isWhole: method === 'GET' && headers.range === undefined && !isConditional,
    });
    try {
      if (isCurrent(request, original.validators)) {
        original.discard();
        return sendNotModified(reply, original.validators, cacheControl);
      }
      if (method === 'HEAD') original.discard();
      return await sendRepresentation(request, reply, {
        contentType: original.contentType,
        contentDisposition: formatMediaDisposition(media, original.contentType),
        cacheControl,
        validators: original.validators,
        sizeBytes: original.sizeBytes,
        open: original.stream,
      });
    } catch (error) {
      original.discard();
      throw error;
    }
  }

  async #sendDefaultAvatar(
    request: FastifyRequest,
    reply: FastifyReply,
    index: string,
    { trace }: RequestContext,
  ): Promise<FastifyReply> {
    const avatar = this.#parts.defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    const cacheControl = defaultAvatarCacheControl(this.#parts.maxAgeSeconds);
    const validators = { etag: avatar.etag, lastModified: undefined };
    trace.outcome = { kind: 'hit' };
    if (isCurrent(request, validators)) return sendNotModified(reply, validators, cacheControl);
    return sendRepresentation(request, reply, {
      contentType: 'image/png',
      contentDisposition: undefined,
      cacheControl,
      validators,
      sizeBytes: avatar.body.length,
      open: (first, last) => avatar.body.subarray(first, last + 1),
    });
  }
}

function isCurrent({ headers }: FastifyRequest, validators: Validators, isMade?: boolean): boolean {
  return isNotModified(
    { ifNoneMatch: headers['if-none-match'], ifModifiedSince: headers['if-modified-since'] },
    validators,
    isMade,
  );
}
