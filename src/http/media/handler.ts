import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { PassthroughMedia } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { type ProxyWatch, rateClientOf } from '../client-address.ts';
import { isConditional, isNotModified, isPreconditionFailed } from '../conditional.ts';
import { formatMediaDisposition } from '../content-disposition.ts';
import type { Exchange } from '../exchange.ts';
import {
  cacheFor,
  formatValidators,
  type Head,
  type MaxAgeSeconds,
  type Part,
  prepareHead,
  selectPart,
  type TagField,
} from '../head.ts';
import { type PreparedBody, prepareBody } from '../prepared-body.ts';
import { parseBeginning } from '../range.ts';
import {
  type MediaTarget,
  MediaTargets,
  type MediaTargetsParts,
  type ParsedTarget,
} from './targets.ts';

interface MediaHandlerParts extends MediaTargetsParts {
  readonly media: MediaService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** `X-Robots-Tag` of all media but default avatars; empty: the responses have none. */
  readonly robotsTag: string;
  /** `undefined`: nothing depends on the client's address. */
  readonly proxyWatch: ProxyWatch | undefined;
}

const HIT = { kind: 'hit' } as const;

/** Responds to GET and HEAD of every path of the contract. */
export class MediaHandler {
  readonly #parts: MediaHandlerParts;
  /** `Cache-Control` of media from the storage, whose URL names one content for ever. */
  readonly #cacheControl: string;
  readonly #avatarCacheControl: string;
  readonly #targets: MediaTargets;
  readonly #defaultAvatars: readonly PreparedBody[];
  /**
   * Prepared results in memory. A result belongs to one request, whose key has all that a head depends on, but for
   * downloads, and for the tags of a redirect.
   */
  readonly #prepared = new WeakMap<MediaResult, PreparedBody>();

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    const { maxAgeSeconds } = parts;
    this.#cacheControl = `${cacheFor(maxAgeSeconds.media)}, immutable`;
    this.#avatarCacheControl = cacheFor(maxAgeSeconds.defaultAvatar);
    this.#targets = new MediaTargets(parts);
    this.#defaultAvatars = parts.defaultAvatars.map(({ body, etag }) =>
      prepareBody(body, {
        contentType: 'image/png',
        contentDisposition: undefined,
        validators: { etag, lastModified: undefined },
        robotsTag: '',
      }),
    );
  }

  methodsAt(target: string): string | undefined {
    return this.#targets.methodsAt(target);
  }

  /**
   * Responds, to a hit at once.
   *
   * @throws MediaError of any stage; `exchange.signal.reason` when the client has gone
   */
  handle(exchange: Exchange): Promise<void> | undefined {
    return this.#serve(exchange, this.#targets.read(exchange));
  }

  #serve(exchange: Exchange, target: ParsedTarget): Promise<void> | undefined {
    if ('index' in target) {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    const { facts } = exchange;
    facts.resource = target.media.resource;
    facts.media = target.media;
    facts.key = target.key;
    // Also where the URL is refused: its 404 must not differ from that of a missing attachment.
    // Of a redirect, too, since the URL that redirects may be blocked or purged as well.
    facts.originKeys = [...facts.originKeys, target.media.originKey];
    const served = this.#targets.admit(exchange, target);
    const { media, key } = served;
    const hit = media.isPassthrough
      ? undefined
      : this.#parts.media.findHit(media, key, facts.trace);
    if (hit === undefined) return this.#serveMiss(exchange, served);
    facts.outcome = HIT;
    this.#sendResult(exchange, hit, served);
    return undefined;
  }

  /** Has a response made, unless the client has it already. */
  async #serveMiss(exchange: Exchange, target: MediaTarget): Promise<void> {
    const { media: service, proxyWatch, robotsTag } = this.#parts;
    const { request, facts, signal } = exchange;
    if (!target.media.isPassthrough) proxyWatch?.check(request, exchange.addresses);
    let part: Part | undefined;
    const response = await service.serve(target, {
      signal,
      trace: facts.trace,
      isConditional: isConditional(request.headers),
      matchesCondition: (validators) =>
        !isPreconditionFailed(request.headers, validators) &&
        isNotModified(request.headers, validators, false),
      rateLimitKey: () => rateClientOf(exchange.addresses),
      onWait: (outcome) => {
        facts.outcome = outcome;
      },
      original: {
        needs: (ignoresRange) => needsOf(request, ignoresRange),
        select: (original, media) => {
          part = selectPart(request, this.#prepareOriginal(exchange, original, media, target));
          return hasBody(request, part) ? part : undefined;
        },
      },
    });
    if (response.kind === 'redirect') {
      if (target.media.url === undefined || target.isRedirected) throw response.error;
      return this.#serve(exchange, this.#targets.readRedirect(exchange, response.error));
    }
    facts.outcome = response.outcome;
    switch (response.kind) {
      case 'rendition':
        this.#sendResult(exchange, response.result, target);
        break;
      case 'not-modified': {
        const fields = formatValidators(response.validators, robotsTag, exchange.tagField);
        exchange.respond(304, fields, undefined, this.#cacheControlOf(target));
        break;
      }
      case 'original': {
        const { maxAgeSeconds } = response.original;
        const cacheControl = this.#cacheControlOf(target, maxAgeSeconds);
        if (part !== undefined) exchange.sendPart(part, cacheControl, response.body);
      }
    }
  }

  #sendResult(exchange: Exchange, result: MediaResult, target: MediaTarget): void {
    const { isDownload = false, isRedirected = false } = target;
    const isShared = !isDownload && !isRedirected;
    let prepared = isShared ? this.#prepared.get(result) : undefined;
    if (prepared === undefined) {
      prepared = this.#prepare(result, target, exchange.tagField);
      if (isShared) this.#prepared.set(result, prepared);
    }
    this.#targets.remember(exchange, target);
    const { blocks } = this.#parts;
    const { originKey, url } = target.media;
    const sent = { originKey, url, etag: result.originalEtag };
    const watch = blocks && ((body: Readable) => blocks.watch(sent, body));
    exchange.sendBytes(prepared, this.#cacheControlOf(target), watch);
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

  #prepareOriginal(
    exchange: Exchange,
    original: PassthroughMedia,
    media: MediaRequest,
    { isDownload }: MediaTarget,
  ): Head {
    const contentType = resourceRows[media.resource].contentType ?? original.contentType;
    return prepareHead({
      ...original,
      contentType,
      contentDisposition: formatMediaDisposition(media, contentType, isDownload),
      robotsTag: this.#parts.robotsTag,
      tagField: exchange.tagField,
    });
  }

  /**
   * Returns the `Cache-Control` of a response that is sent now: it depends on the time that has passed.
   *
   * @param siteSeconds what is left of the lifetime that another site gives its media, if already known
   */
  #cacheControlOf(
    { media, guarded, isRedirected = false }: MediaTarget,
    siteSeconds?: number,
  ): string {
    const { media: service, external, maxAgeSeconds: ours } = this.#parts;
    if (media.url !== undefined) {
      // Media that their site fails to confirm are kept as long as media of which it says nothing.
      const leftSeconds = siteSeconds ?? service.maxAgeOf(media) ?? 0;
      return cacheFor(Math.max(leftSeconds, external?.minAgeSeconds ?? 0));
    }
    const leftSeconds = guarded && this.#parts.guard?.maxAgeOf(guarded.signature);
    if (leftSeconds === undefined && !isRedirected) return this.#cacheControl;
    // A redirect is kept as long as media of which their site says nothing.
    const redirectSeconds = isRedirected ? (external?.minAgeSeconds ?? 0) : ours.media;
    return cacheFor(Math.min(ours.media, redirectSeconds, leftSeconds ?? ours.media));
  }

  #sendDefaultAvatar(exchange: Exchange, index: string): void {
    exchange.facts.resource = 'default avatar';
    exchange.facts.media = undefined;
    exchange.facts.key = undefined;
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.facts.outcome = HIT;
    exchange.sendBytes(avatar, this.#avatarCacheControl);
  }
}

/** Returns what a request needs of an original. @param ignoresRange drops the range: the whole is sent */
function needsOf({ method, headers }: IncomingMessage, ignoresRange: boolean) {
  if (ignoresRange) delete headers.range;
  return {
    isWhole: method === 'GET' && headers.range === undefined && !isConditional(headers),
    isPart: method === 'GET' && headers.range !== undefined,
    beginning: parseBeginning(headers.range),
  };
}

function hasBody({ method }: IncomingMessage, { status }: Part): boolean {
  return method !== 'HEAD' && (status === 200 || status === 206);
}
