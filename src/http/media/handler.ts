import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { EdgeTags } from '../../contract/edge-tags.ts';
import { MediaError } from '../../contract/errors.ts';
import { hasOwnToken } from '../../contract/external-url.ts';
import {
  isKnownPath,
  parseTarget,
  resolveOwnUrl,
  resolveTarget,
  resultKey,
  splitTarget,
  type TargetReading,
  unchangedOf,
} from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import { type PathEncoding, verifyExternalPath } from '../../contract/signing/external-path.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { BlockGuard } from '../../pipeline/blocks/block-guard.ts';
import { OriginalReplaced, type PassthroughService } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { ownUrlOf, siteError } from '../../pipeline/site-failure.ts';
import { type PreparedBody, prepareBody } from '../body.ts';
import { type ProxyWatch, rateClientOf } from '../client-address.ts';
import { isConditional, isNotModified } from '../conditional.ts';
import { formatMediaDisposition } from '../content-disposition.ts';
import type { Exchange } from '../exchange.ts';
import {
  cacheFor,
  formatValidators,
  type MaxAgeSeconds,
  prepareHead,
  type TagField,
} from '../head.ts';
import { parseBeginning } from '../range.ts';
import type { AttachmentGuard, GuardedAttachment, KeyedRequest } from './attachment-guard.ts';

/** Parts that media are served with. */
interface MediaHandlerParts {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** `X-Robots-Tag` of all media but default avatars; empty: the responses have none. */
  readonly robotsTag: string;
  readonly reading: Omit<TargetReading, 'readExternal'>;
  /** `undefined`: there is no CDN in front that takes tags. */
  readonly tags: EdgeTags | undefined;
  /** `undefined`: there are no external media. */
  readonly external: ExternalTerms | undefined;
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  /** `undefined`: the URLs of attachments need no signature. */
  readonly guard: AttachmentGuard | undefined;
  /** `undefined`: nothing depends on the client's address. */
  readonly proxyWatch: ProxyWatch | undefined;
}

/** Keys and ages of external media. */
interface ExternalTerms {
  readonly keys: SigningKeys;
  readonly pathEncoding: PathEncoding;
  /** `max-age` where their site says nothing. */
  readonly minAgeSeconds: number;
}

/** Parsed request target of media from a storage or another site. */
interface MediaTarget extends KeyedRequest {
  /** Verdict on the URL of an attachment that has to be signed. */
  readonly guarded?: GuardedAttachment;
  /** Whether a browser is to save the body, whatever its type. */
  readonly isDownload?: boolean;
  /** Whether another site redirects to it, which it may cease to do. */
  readonly isRedirected?: boolean;
}

type ParsedTarget = MediaTarget | { readonly index: string };

/** Longest target that is remembered: all but long names with a signature, and long URLs of other sites. */
const MAX_TARGET_LENGTH = 768;

/** Each takes some 600 bytes with its request, a signed attachment about twice as much. */
const MAX_TARGETS = 8_192;

const HIT = { kind: 'hit' } as const;

/** Responds to GET and HEAD of every path of the contract. */
export class MediaHandler {
  readonly #parts: MediaHandlerParts;
  /** `Cache-Control` of media from the storage, whose URL names one content for ever. */
  readonly #cacheControl: string;
  readonly #avatarCacheControl: string;
  readonly #guard: AttachmentGuard | undefined;
  readonly #defaultAvatars: readonly PreparedBody[];
  readonly #reading: TargetReading;
  /** Parsed targets of results: to parse one takes longer than all else of a hit but its sending. */
  readonly #targets = new LRUCache<string, MediaTarget>({ max: MAX_TARGETS });
  /** Prepared results in memory. A result belongs to one request, whose key has all that a head depends on, but for downloads. */
  readonly #prepared = new WeakMap<MediaResult, PreparedBody>();
  /** Tags by the key of the original: a field takes some 15 µs, as long as a hit. */
  readonly #tagFields = new LRUCache<string, TagField>({ max: MAX_TARGETS });

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    const { external, guard, maxAgeSeconds } = parts;
    this.#cacheControl = `${cacheFor(maxAgeSeconds.media)}, immutable`;
    this.#avatarCacheControl = cacheFor(maxAgeSeconds.defaultAvatar);
    this.#guard = guard;
    this.#reading = {
      ...parts.reading,
      readExternal:
        external &&
        ((rawPath) => verifyExternalPath(rawPath, external.keys, external.pathEncoding)),
    };
    this.#defaultAvatars = parts.defaultAvatars.map(({ body, etag }) =>
      prepareBody(body, {
        contentType: 'image/png',
        contentDisposition: undefined,
        validators: { etag, lastModified: undefined },
        robotsTag: '',
      }),
    );
  }

  /** Whether the path of a request target is one of ours, even with invalid values. */
  knowsPath(target: string): boolean {
    return isKnownPath(target, this.#reading);
  }

  /**
   * Responds, to a hit at once.
   *
   * @throws MediaError of any stage; `exchange.signal.reason` when the client has gone
   */
  handle(exchange: Exchange): Promise<void> | undefined {
    const target =
      this.#targets.get(exchange.target) ??
      this.#parse(exchange, resolveTarget(exchange.target, this.#reading));
    const work = this.#serve(exchange, target);
    if ('index' in target || target.media.url === undefined) return work;
    return work?.catch((error: unknown) => this.#followHome(exchange, error));
  }

  /** Serves the media of ours that another site redirects to, once; any other error is thrown. */
  #followHome(exchange: Exchange, error: unknown): Promise<void> | undefined {
    const ownUrl = ownUrlOf(error);
    if (ownUrl === undefined) throw error;
    const [, query] = splitTarget(resolveTarget(exchange.target, this.#reading));
    const text = resolveOwnUrl(ownUrl, query, this.#reading);
    if (text === undefined) throw error;
    return this.#serve(exchange, { ...this.#parse(exchange, text), isRedirected: true });
  }

  /** @throws MediaError of any stage */
  #serve(exchange: Exchange, target: ParsedTarget): Promise<void> | undefined {
    if ('index' in target) {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    exchange.record.noteTarget(target.media.resource, target.media, target.key);
    // Also where the URL is refused: its 404 must not differ from that of a missing attachment.
    const { tags } = this.#parts;
    if (tags !== undefined) exchange.tagField = () => this.#tagFieldOf(tags, target);
    if (target.media.url !== undefined) checkLoop(exchange.request);
    const served = this.#unlessBlocked(exchange, this.#admit(exchange, target));
    const { media, key } = served;
    if (media.isPassthrough) return this.#sendOriginal(exchange, served);
    const hit = this.#parts.media.findHit(media, key, exchange.record.trace);
    if (hit === undefined) return this.#sendRendering(exchange, served);
    this.#sendResult(exchange, hit, served);
    return undefined;
  }

  /** @throws MediaError `UNAUTHORIZED`, `NOT_FOUND`, `INVALID_FORM_BODY` */
  #parse(exchange: Exchange, text: string): ParsedTarget {
    const guard = this.#guard;
    if (guard !== undefined) exchange.maxRefusalAgeSeconds = () => guard.maxRefusalAgeOf(text);
    const target = parseTarget(text, this.#reading);
    if (target.kind === 'default avatar') return target;
    const { request: media, isDownload } = target;
    const parsed = { media, key: resultKey(media), isDownload };
    if (guard === undefined || media.resource !== 'attachment') return parsed;
    return { ...parsed, guarded: guard.examine(text, media) };
  }

  /**
   * Returns the target that is served: the request's own; or, if its URL is refused, an absent one, so that the
   * response is that of a missing attachment, whatever else the request says.
   */
  #admit(exchange: Exchange, target: MediaTarget): MediaTarget {
    const { guarded } = target;
    if (guarded === undefined || this.#guard === undefined) return target;
    const verdict = this.#guard.judge(guarded.signature);
    exchange.record.noteSignature(verdict);
    if (this.#guard.isRefused(verdict)) return { ...target, ...guarded.absent };
    exchange.maxRefusalAgeSeconds = () => this.#guard?.maxAgeOf(guarded.signature);
    return target;
  }

  /**
   * Returns the target, or the one of a missing original in the place of a hidden one, so that the response is the same.
   *
   * @throws MediaError `UNAVAILABLE`; `UNKNOWN_MEDIA` for external media, which need no fetch to look missing
   */
  #unlessBlocked(exchange: Exchange, target: MediaTarget): MediaTarget {
    const { blocks } = this.#parts;
    const block = blocks?.find(target.media);
    if (blocks === undefined || block === undefined) return target;
    const { url, isPassthrough } = target.media;
    if (block.hidden && url === undefined) return { ...target, ...blocks.absentOf(target.media) };
    exchange.record.trace.outcome = isPassthrough ? { kind: 'bypass' } : HIT;
    throw blocks.refuse(block);
  }

  /** Has a rendering made, unless the client has it already. */
  async #sendRendering(exchange: Exchange, target: MediaTarget): Promise<void> {
    const { media, proxyWatch, robotsTag } = this.#parts;
    const { request, record, signal } = exchange;
    proxyWatch?.check(request, exchange.addresses);
    const served = await media.serve(target.media, target.key, {
      signal,
      trace: record.trace,
      isConditional: isConditional(request.headers),
      isCurrent: (validators) => isNotModified(request.headers, validators, false),
      client: () => rateClientOf(exchange.addresses),
    });
    if (served.kind === 'result') {
      this.#sendResult(exchange, served.result, target);
      return;
    }
    if (served.kind === 'unchanged') {
      await this.#sendOriginal(exchange, { ...target, media: unchangedOf(target.media) });
      return;
    }
    const fields = formatValidators(served.validators, robotsTag, exchange.tagField?.());
    exchange.respond(304, fields, undefined, this.#cacheControlOf(target));
  }

  #sendResult(exchange: Exchange, result: MediaResult, target: MediaTarget): void {
    const { isDownload = false } = target;
    let prepared = isDownload ? undefined : this.#prepared.get(result);
    if (prepared === undefined) {
      prepared = this.#prepare(result, target, exchange.tagField?.());
      if (!isDownload) this.#prepared.set(result, prepared);
    }
    const { target: text } = exchange;
    const isLasting = text.length <= MAX_TARGET_LENGTH && target.isRedirected !== true;
    if (isLasting && !this.#targets.has(text)) this.#targets.set(text, target);
    exchange.sendBytes(prepared, this.#cacheControlOf(target));
  }

  #prepare(
    result: MediaResult,
    { media, isDownload }: MediaTarget,
    tagField: TagField | undefined,
  ): PreparedBody {
    const { body, mimeType, etag, lastModified } = result;
    return prepareBody(Buffer.from(body.buffer, body.byteOffset, body.byteLength), {
      contentType: mimeType,
      contentDisposition: formatMediaDisposition(media, mimeType, isDownload),
      validators: { etag, lastModified },
      robotsTag: this.#parts.robotsTag,
      tagField,
    });
  }

  #tagFieldOf(tags: EdgeTags, { media }: MediaTarget): TagField {
    const known = this.#tagFields.get(media.originKey);
    if (known !== undefined) return known;
    const field = tags.fieldOf(media.originKey);
    this.#tagFields.set(media.originKey, field);
    return field;
  }

  /** Another site may have replaced an original of which the request wants a part: then it gets the whole. */
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
    const { blocks } = this.#parts;
    const { headers, method } = exchange.request;
    const original = await this.#parts.passthrough.open(target.media, {
      signal: exchange.signal,
      trace: exchange.record.trace,
      isWhole: method === 'GET' && headers.range === undefined && !isConditional(headers),
      isPart: method === 'GET' && headers.range !== undefined,
      beginning: parseBeginning(headers.range),
    });
    const contentType = resourceRows[target.media.resource].contentType ?? original.contentType;
    const head = prepareHead({
      ...original,
      contentType,
      contentDisposition: formatMediaDisposition(target.media, contentType, target.isDownload),
      robotsTag: this.#parts.robotsTag,
      tagField: exchange.tagField?.(),
    });
    const cacheControl = this.#cacheControlOf(target, original.maxAgeSeconds);
    let isOpened = false;
    try {
      blocks?.check(target.media);
      isOpened = await exchange.sendStream(head, cacheControl, async (first, last) => {
        const body = await original.stream(first, last);
        return blocks?.watch(target.media, body) ?? body;
      });
    } finally {
      if (!isOpened) original.discard();
    }
  }

  /**
   * Returns the `Cache-Control` of a response that is sent now: it depends on the time that has passed.
   *
   * @param maxAgeSeconds age of another site's media, if already known
   */
  #cacheControlOf(
    { media, guarded, isRedirected = false }: MediaTarget,
    maxAgeSeconds?: number,
  ): string {
    const { media: service, external, maxAgeSeconds: ours } = this.#parts;
    if (maxAgeSeconds !== undefined) return cacheFor(maxAgeSeconds);
    if (media.url !== undefined) {
      // Media that their site fails to confirm are kept as long as media of which it says nothing.
      return cacheFor(service.maxAgeOf(media) ?? external?.minAgeSeconds ?? 0);
    }
    const leftSeconds = guarded && this.#guard?.maxAgeOf(guarded.signature);
    if (leftSeconds === undefined && !isRedirected) return this.#cacheControl;
    // A redirect is kept as long as media of which their site says nothing.
    const redirectSeconds = isRedirected ? (external?.minAgeSeconds ?? 0) : ours.media;
    return cacheFor(Math.min(ours.media, redirectSeconds, leftSeconds ?? ours.media));
  }

  #sendDefaultAvatar(exchange: Exchange, index: string): void {
    exchange.record.noteTarget('default avatar');
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.record.trace.outcome = HIT;
    exchange.sendBytes(avatar, this.#avatarCacheControl);
  }
}

/** @throws MediaError `ORIGIN_ERROR` if a request for external media has come through us before */
function checkLoop({ headers }: IncomingMessage): void {
  const loop = headers['cdn-loop'];
  const text = Array.isArray(loop) ? loop.join(', ') : (loop ?? '');
  if (text === '' || !hasOwnToken(text)) return;
  throw siteError('The request has come through us before.', { reason: 'loop' });
}
