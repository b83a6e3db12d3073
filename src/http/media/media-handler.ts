import { LRUCache } from 'lru-cache';
import { MediaError } from '../../contract/errors.ts';
import { type MediaRequest, parseTarget, resultKey } from '../../contract/media-request.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { PassthroughService } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import type { Exchange } from '../exchange.ts';
import {
  defaultAvatarCacheControl,
  type MaxAgeSeconds,
  mediaCacheControl,
} from '../response-headers.ts';
import { isConditional, isNotModified } from './conditional.ts';
import { formatMediaDisposition } from './content-disposition.ts';
import {
  createRepresentation,
  type Representation,
  sendBytes,
  sendNotModified,
  sendStream,
} from './representation.ts';

/** What the media are served from. */
export interface MediaHandlerParts {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly maxAgeSeconds: MaxAgeSeconds;
}

/** What a request target turned out to ask for. */
type KnownTarget =
  | { readonly kind: 'media'; readonly media: MediaRequest; readonly key: string }
  | { readonly kind: 'default avatar'; readonly index: string };

const HIT = { kind: 'hit' } as const;

/** Longer targets are rare, and are read anew each time. */
const MAX_TARGET_LENGTH = 256;

/** Each takes some 600 bytes, with its request. */
const MAX_TARGETS = 8_192;

/** Responds to GET and HEAD of every path of the contract. */
export class MediaHandler {
  readonly #parts: MediaHandlerParts;
  readonly #cacheControl: string;
  readonly #defaultAvatars: readonly { body: Buffer; representation: Representation }[];
  /** Popular ones need not be read again: to read one takes longer than all else of a hit but its sending. */
  readonly #targets = new LRUCache<string, KnownTarget>({ max: MAX_TARGETS });
  /** The heads of results in memory. A result is of one request: its key has all that a head depends on. */
  readonly #representations = new WeakMap<MediaResult, Representation>();

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    this.#cacheControl = mediaCacheControl(parts.maxAgeSeconds);
    this.#defaultAvatars = parts.defaultAvatars.map(({ body, etag }) => ({
      body,
      representation: createRepresentation({
        contentType: 'image/png',
        contentDisposition: undefined,
        cacheControl: defaultAvatarCacheControl(parts.maxAgeSeconds),
        validators: { etag, lastModified: undefined },
        sizeBytes: body.length,
      }),
    }));
  }

  /**
   * Responds, to a hit at once: nothing of it waits.
   *
   * @throws MediaError of any stage; `exchange.signal.reason` when the client has gone
   */
  handle(exchange: Exchange): Promise<void> | undefined {
    const target = this.#targets.get(exchange.target) ?? readTarget(exchange.target);
    if (target.kind === 'default avatar') {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    const { media, key } = target;
    exchange.record.noteTarget(media.resource, media, key);
    if (media.isPassthrough) return this.#sendOriginal(exchange, media);
    const hit = this.#parts.media.findHit(media, key, exchange.record.trace);
    if (hit === undefined) return this.#sendRendering(exchange, media, key);
    // What was asked for once is mostly not asked for again: only what was is worth remembering.
    if (exchange.target.length <= MAX_TARGET_LENGTH) this.#targets.set(exchange.target, target);
    this.#sendResult(exchange, hit, media);
    return undefined;
  }

  /** Has a rendering made, unless the client has it already. */
  async #sendRendering(exchange: Exchange, media: MediaRequest, key: string): Promise<void> {
    const served = await this.#parts.media.serve(media, key, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isCurrent: (validators, isMade) =>
        isConditional(exchange.request.headers) &&
        isNotModified(exchange.request.headers, validators(), isMade),
    });
    if (served.kind === 'current') {
      sendNotModified(exchange, served.validators, this.#cacheControl);
    } else {
      this.#sendResult(exchange, served.result, media);
    }
  }

  #sendResult(exchange: Exchange, result: MediaResult, media: MediaRequest): void {
    const { body, mimeType, etag, lastModified } = result;
    let representation = this.#representations.get(result);
    if (representation === undefined) {
      representation = createRepresentation({
        contentType: mimeType,
        contentDisposition: formatMediaDisposition(media, mimeType),
        cacheControl: this.#cacheControl,
        validators: { etag, lastModified },
        sizeBytes: body.byteLength,
      });
      this.#representations.set(result, representation);
    }
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    sendBytes(exchange, representation, bytes);
  }

  async #sendOriginal(exchange: Exchange, media: MediaRequest): Promise<void> {
    const { headers, method } = exchange.request;
    const original = await this.#parts.passthrough.open(media, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isWhole: method === 'GET' && headers.range === undefined && !isConditional(headers),
    });
    const representation = createRepresentation({
      ...original,
      contentDisposition: formatMediaDisposition(media, original.contentType),
      cacheControl: this.#cacheControl,
    });
    let isOpened = false;
    try {
      isOpened = await sendStream(exchange, representation, original.stream);
    } finally {
      if (!isOpened) original.discard();
    }
  }

  #sendDefaultAvatar(exchange: Exchange, index: string): void {
    exchange.record.noteTarget('default avatar');
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.record.trace.outcome = HIT;
    sendBytes(exchange, avatar.representation, avatar.body);
  }
}

/** @throws MediaError `NOT_FOUND`, `INVALID_FORM_BODY` */
function readTarget(text: string): KnownTarget {
  const target = parseTarget(text);
  if (target.kind === 'default avatar') return target;
  const { request } = target;
  return { kind: 'media', media: request, key: resultKey(request) };
}
