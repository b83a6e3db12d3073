import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { hasOwnToken } from '../../contract/cdn-loop.ts';
import { MediaError } from '../../contract/errors.ts';
import { verifyExternalPath } from '../../contract/external-path.ts';
import {
  type ExternalPathReader,
  isKnownPath,
  type MediaRequest,
  parseTarget,
  resultKey,
} from '../../contract/media-request.ts';
import type { SigningKeys } from '../../contract/signing-keys.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { PassthroughService } from '../../pipeline/originals/passthrough.ts';
import { OriginalReplaced } from '../../pipeline/originals/passthrough-media.ts';
import type { ByteRange, MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import type { Exchange } from '../exchange.ts';
import {
  defaultAvatarCacheControl,
  externalCacheControl,
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
  /** `undefined`: there are no external media. */
  readonly external: ExternalTerms | undefined;
}

/** How external media are asked for, and kept. */
interface ExternalTerms {
  readonly keys: SigningKeys;
  /** `max-age` where their site says nothing. */
  readonly minAgeSeconds: number;
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
  readonly #readExternal: ExternalPathReader | undefined;
  readonly #defaultAvatars: readonly { body: Buffer; representation: Representation }[];
  /** Popular ones need not be read again: to read one takes longer than all else of a hit but its sending. */
  readonly #targets = new LRUCache<string, KnownTarget>({ max: MAX_TARGETS });
  /** The heads of results in memory. A result is of one request: its key has all that a head depends on. */
  readonly #representations = new WeakMap<MediaResult, Representation>();

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    this.#cacheControl = mediaCacheControl(parts.maxAgeSeconds);
    const { external } = parts;
    this.#readExternal = external && ((rawPath) => verifyExternalPath(rawPath, external.keys));
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

  /** Whether the path of a request target is one of ours, its values right or not. */
  knowsPath(target: string): boolean {
    return isKnownPath(target, this.#readExternal !== undefined);
  }

  /**
   * Responds, to a hit at once: nothing of it waits.
   *
   * @throws MediaError of any stage; `exchange.signal.reason` when the client has gone
   */
  handle(exchange: Exchange): Promise<void> | undefined {
    const target =
      this.#targets.get(exchange.target) ?? readTarget(exchange.target, this.#readExternal);
    if (target.kind === 'default avatar') {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    const { media, key } = target;
    exchange.record.noteTarget(media.resource, media, key);
    if (media.url !== undefined) checkLoop(exchange.request);
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
      sendNotModified(exchange, served.validators, this.#cacheControlOf(media));
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
        cacheControl: this.#cacheControlOf(media),
        validators: { etag, lastModified },
        sizeBytes: body.byteLength,
      });
      // How long another site lets it be kept may change while it stays the same.
      if (media.url === undefined) this.#representations.set(result, representation);
    }
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    sendBytes(exchange, representation, bytes);
  }

  /** Another site may have replaced what it was asked a part of: then the whole of it is sent. */
  async #sendOriginal(exchange: Exchange, media: MediaRequest): Promise<void> {
    try {
      await this.#sendOpened(exchange, media);
    } catch (error) {
      if (!(error instanceof OriginalReplaced)) throw error;
      delete exchange.request.headers.range;
      await this.#sendOpened(exchange, media);
    }
  }

  async #sendOpened(exchange: Exchange, media: MediaRequest): Promise<void> {
    const { headers, method } = exchange.request;
    const original = await this.#parts.passthrough.open(media, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isWhole: method === 'GET' && headers.range === undefined && !isConditional(headers),
      isPart: method === 'GET' && headers.range !== undefined,
      beginning: readBeginning(headers.range),
    });
    const { maxAgeSeconds } = original;
    const representation = createRepresentation({
      ...original,
      contentDisposition: formatMediaDisposition(media, original.contentType),
      cacheControl:
        maxAgeSeconds === undefined ? this.#cacheControl : externalCacheControl(maxAgeSeconds),
    });
    let isOpened = false;
    try {
      isOpened = await sendStream(exchange, representation, original.stream);
    } finally {
      if (!isOpened) original.discard();
    }
  }

  /** What another site fails to confirm is kept as long as what it says nothing of. */
  #cacheControlOf(media: MediaRequest): string {
    if (media.url === undefined) return this.#cacheControl;
    const { media: service, external } = this.#parts;
    return externalCacheControl(service.maxAgeOf(media) ?? external?.minAgeSeconds ?? 0);
  }

  #sendDefaultAvatar(exchange: Exchange, index: string): void {
    exchange.record.noteTarget('default avatar');
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.record.trace.outcome = HIT;
    sendBytes(exchange, avatar.representation, avatar.body);
  }
}

/** A range that begins at 0, whatever the length of the body may be. */
function readBeginning(range: string | undefined): ByteRange | undefined {
  const [, digits] = /^bytes=0-(\d{0,15})$/i.exec(range ?? '') ?? [];
  if (digits === undefined) return undefined;
  return { first: 0, last: digits === '' ? undefined : Number(digits) };
}

/** @throws MediaError `UNAUTHORIZED`, `NOT_FOUND`, `INVALID_FORM_BODY` */
function readTarget(text: string, readExternal: ExternalPathReader | undefined): KnownTarget {
  const target = parseTarget(text, readExternal);
  if (target.kind === 'default avatar') return target;
  const { request } = target;
  return { kind: 'media', media: request, key: resultKey(request) };
}

/** @throws MediaError `ORIGIN_ERROR` if a request for external media has come through us before */
function checkLoop({ headers }: IncomingMessage): void {
  const loop = headers['cdn-loop'];
  const text = Array.isArray(loop) ? loop.join(', ') : (loop ?? '');
  if (text === '' || !hasOwnToken(text)) return;
  throw siteError('The request has come through us before.', { reason: 'loop' });
}
