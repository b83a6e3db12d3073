import type { IncomingMessage } from 'node:http';
import { MediaError } from '../../contract/errors.ts';
import { hasOwnToken } from '../../contract/external-url.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import { OriginalReplaced, type PassthroughService } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import { type ProxyWatch, rateClientOf } from '../client-address.ts';
import type { Exchange } from '../exchange.ts';
import { cacheFor, type MaxAgeSeconds } from '../response-headers.ts';
import type { AttachmentGuard } from './attachment-guard.ts';
import { isConditional, isNotModified } from './conditional.ts';
import { formatMediaDisposition } from './content-disposition.ts';
import { type MediaTarget, MediaTargets } from './media-targets.ts';
import { parseBeginning } from './range.ts';
import {
  createRepresentation,
  type Representation,
  sendBytes,
  sendNotModified,
  sendStream,
} from './representation.ts';

/** Parts that media are served with. */
interface MediaHandlerParts {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** `X-Robots-Tag` of all media but default avatars; empty: it is not sent. */
  readonly robotsTag: string;
  /** `undefined`: there are no external media. */
  readonly external: ExternalTerms | undefined;
  /** `undefined`: nothing is asked of the URLs of attachments. */
  readonly guard: AttachmentGuard | undefined;
  /** `undefined`: it makes no difference who asks. */
  readonly proxyWatch: ProxyWatch | undefined;
}

/** Keys and ages of external media. */
interface ExternalTerms {
  readonly keys: SigningKeys;
  /** `max-age` where their site says nothing. */
  readonly minAgeSeconds: number;
}

const HIT = { kind: 'hit' } as const;

/** Responds to GET and HEAD of every path of the contract. */
export class MediaHandler {
  readonly #parts: MediaHandlerParts;
  /** `Cache-Control` of media from the storage, whose URL names one content for ever. */
  readonly #cacheControl: string;
  readonly #avatarCacheControl: string;
  readonly #guard: AttachmentGuard | undefined;
  readonly #defaultAvatars: readonly { body: Buffer; representation: Representation }[];
  readonly #targets: MediaTargets;
  /** The heads of results in memory. A result is of one request: its key has all that a head depends on. */
  readonly #representations = new WeakMap<MediaResult, Representation>();

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    const { external, guard, maxAgeSeconds } = parts;
    this.#cacheControl = `${cacheFor(maxAgeSeconds.media)}, immutable`;
    this.#avatarCacheControl = cacheFor(maxAgeSeconds.defaultAvatar);
    this.#guard = guard;
    this.#targets = new MediaTargets(external?.keys, guard);
    this.#defaultAvatars = parts.defaultAvatars.map(({ body, etag }) => ({
      body,
      representation: createRepresentation({
        contentType: 'image/png',
        contentDisposition: undefined,
        validators: { etag, lastModified: undefined },
        sizeBytes: body.length,
        robotsTag: '',
      }),
    }));
  }

  /** Whether the path of a request target is one of ours, its values right or not. */
  knowsPath(target: string): boolean {
    return this.#targets.knowsPath(target);
  }

  /**
   * Responds, to a hit at once: nothing of it waits.
   *
   * @throws MediaError of any stage; `exchange.signal.reason` when the client has gone
   */
  handle(exchange: Exchange): Promise<void> | undefined {
    const guard = this.#guard;
    if (guard !== undefined) {
      exchange.maxRefusalAgeSeconds = () => guard.maxRefusalAgeOf(exchange.target);
    }
    const target = this.#targets.read(exchange.target);
    if (target.kind === 'default avatar') {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    exchange.record.noteTarget(target.media.resource, target.media, target.key);
    if (target.media.url !== undefined) checkLoop(exchange.request);
    const served = this.#admit(exchange, target);
    const { media, key } = served;
    if (media.isPassthrough) return this.#sendOriginal(exchange, served);
    const hit = this.#parts.media.findHit(media, key, exchange.record.trace);
    if (hit === undefined) return this.#sendRendering(exchange, served);
    // What was asked for once is mostly not asked for again: only what was is worth remembering.
    this.#targets.remember(exchange.target, target);
    this.#sendResult(exchange, hit, served);
    return undefined;
  }

  /**
   * Returns the target that a request is served: its own; or, where its URL is refused, an absent one, so that all that
   * follows is what a missing attachment gets, whatever else the request says.
   */
  #admit(exchange: Exchange, target: MediaTarget): MediaTarget {
    const { record } = exchange;
    const { guarded } = target;
    if (guarded === undefined || this.#guard === undefined) return target;
    const verdict = this.#guard.judge(guarded.signature);
    record.noteSignature(verdict);
    if (this.#guard.isRefused(verdict)) return { ...target, ...guarded.absent };
    exchange.maxRefusalAgeSeconds = () => this.#guard?.maxAgeOf(guarded.signature);
    return target;
  }

  /** Has a rendering made, unless the client has it already. */
  async #sendRendering(exchange: Exchange, target: MediaTarget): Promise<void> {
    const { media, key } = target;
    this.#parts.proxyWatch?.look(exchange.received);
    const { headers } = exchange.request;
    const served = await this.#parts.media.serve(media, key, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isConditional: isConditional(headers),
      isCurrent: (validators) =>
        isConditional(headers) && isNotModified(headers, validators, false),
      client: () => rateClientOf(exchange.received),
    });
    if (served.kind === 'current') {
      const { robotsTag } = this.#parts;
      const current = { validators: served.validators, robotsTag };
      sendNotModified(exchange, current, this.#cacheControlOf(target));
    } else {
      this.#sendResult(exchange, served.result, target);
    }
  }

  #sendResult(exchange: Exchange, result: MediaResult, target: MediaTarget): void {
    const { body, mimeType, etag, lastModified } = result;
    let representation = this.#representations.get(result);
    if (representation === undefined) {
      representation = createRepresentation({
        contentType: mimeType,
        contentDisposition: formatMediaDisposition(target.media, mimeType),
        validators: { etag, lastModified },
        sizeBytes: body.byteLength,
        robotsTag: this.#parts.robotsTag,
      });
      this.#representations.set(result, representation);
    }
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    sendBytes(exchange, representation, this.#cacheControlOf(target), bytes);
  }

  /** Another site may have replaced what it was asked a part of: then the whole of it is sent. */
  async #sendOriginal(exchange: Exchange, target: MediaTarget): Promise<void> {
    try {
      await this.#sendOpened(exchange, target);
    } catch (error) {
      if (!(error instanceof OriginalReplaced)) throw error;
      delete exchange.request.headers.range;
      await this.#sendOpened(exchange, target);
    }
  }

  async #sendOpened(exchange: Exchange, target: MediaTarget): Promise<void> {
    const { media } = target;
    const { headers, method } = exchange.request;
    const original = await this.#parts.passthrough.open(media, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isWhole: method === 'GET' && headers.range === undefined && !isConditional(headers),
      isPart: method === 'GET' && headers.range !== undefined,
      beginning: parseBeginning(headers.range),
    });
    const representation = createRepresentation({
      ...original,
      contentDisposition: formatMediaDisposition(media, original.contentType),
      robotsTag: this.#parts.robotsTag,
    });
    const cacheControl = this.#cacheControlOf(target, original.maxAgeSeconds);
    let isOpened = false;
    try {
      isOpened = await sendStream(exchange, representation, cacheControl, original.stream);
    } finally {
      if (!isOpened) original.discard();
    }
  }

  /**
   * Returns the `Cache-Control`, when the response is sent: until then, time has passed.
   *
   * @param maxAgeSeconds of another site's media, where that is known already
   */
  #cacheControlOf({ media, guarded }: MediaTarget, maxAgeSeconds?: number): string {
    const { media: service, external, maxAgeSeconds: ours } = this.#parts;
    if (maxAgeSeconds !== undefined) return cacheFor(maxAgeSeconds);
    if (media.url !== undefined) {
      // What another site fails to confirm is kept as long as what it says nothing of.
      return cacheFor(service.maxAgeOf(media) ?? external?.minAgeSeconds ?? 0);
    }
    const leftSeconds = guarded && this.#guard?.maxAgeOf(guarded.signature);
    if (leftSeconds === undefined) return this.#cacheControl;
    return cacheFor(Math.min(ours.media, leftSeconds));
  }

  #sendDefaultAvatar(exchange: Exchange, index: string): void {
    exchange.record.noteTarget('default avatar');
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.record.trace.outcome = HIT;
    sendBytes(exchange, avatar.representation, this.#avatarCacheControl, avatar.body);
  }
}

/** @throws MediaError `ORIGIN_ERROR` if a request for external media has come through us before */
function checkLoop({ headers }: IncomingMessage): void {
  const loop = headers['cdn-loop'];
  const text = Array.isArray(loop) ? loop.join(', ') : (loop ?? '');
  if (text === '' || !hasOwnToken(text)) return;
  throw siteError('The request has come through us before.', { reason: 'loop' });
}
