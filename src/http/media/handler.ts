import type { Readable } from 'node:stream';
import { LRUCache } from 'lru-cache';
import type { EdgeTags } from '../../contract/edge-tags.ts';
import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import { type MediaRequest, unchangedOf } from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import { absentOf, isHidden } from '../../pipeline/absent-media.ts';
import { OriginalReplaced, type PassthroughService } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { type ProxyWatch, rateClientOf } from '../client-address.ts';
import { isConditional, isNotModified, isPreconditionFailed } from '../conditional.ts';
import { dispositionOf, formatContentDisposition } from '../content-disposition.ts';
import { type Exchange, type PreparedBody, prepareBody } from '../exchange.ts';
import {
  cacheFor,
  formatValidators,
  type MaxAgeSeconds,
  prepareHead,
  type TagField,
} from '../head.ts';
import { parseBeginning } from '../range.ts';
import {
  type MediaTarget,
  MediaTargets,
  type MediaTargetsParts,
  type ParsedTarget,
} from './targets.ts';

interface MediaHandlerParts extends MediaTargetsParts {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly defaultAvatars: readonly DefaultAvatar[];
  readonly maxAgeSeconds: MaxAgeSeconds;
  /** `X-Robots-Tag` of all media but default avatars; empty: the responses have none. */
  readonly robotsTag: string;
  /** `undefined`: there is no CDN in front that takes tags. */
  readonly tags: EdgeTags | undefined;
  /** `undefined`: nothing depends on the client's address. */
  readonly proxyWatch: ProxyWatch | undefined;
}

/** Keys whose tags are remembered. */
const MAX_TAG_FIELDS = 8_192;

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
  readonly #tagFieldOf: ((originKeys: readonly string[]) => TagField) | undefined;

  constructor(parts: MediaHandlerParts) {
    this.#parts = parts;
    const { maxAgeSeconds } = parts;
    this.#cacheControl = `${cacheFor(maxAgeSeconds.media)}, immutable`;
    this.#avatarCacheControl = cacheFor(maxAgeSeconds.defaultAvatar);
    this.#targets = new MediaTargets(parts);
    this.#tagFieldOf = parts.tags && rememberFields(parts.tags);
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
    const target = this.#targets.read(exchange);
    const work = this.#serve(exchange, target);
    if ('index' in target || target.media.url === undefined) return work;
    return work?.catch((error: unknown) =>
      this.#serve(exchange, this.#targets.readRedirect(exchange, error)),
    );
  }

  #serve(exchange: Exchange, target: ParsedTarget): Promise<void> | undefined {
    if ('index' in target) {
      this.#sendDefaultAvatar(exchange, target.index);
      return undefined;
    }
    exchange.record.noteTarget(target.media.resource, target.media, target.key);
    // Also where the URL is refused: its 404 must not differ from that of a missing attachment.
    // Of a redirect, too, since the URL that redirects may be blocked or purged as well.
    exchange.taggedKeys = [...exchange.taggedKeys, target.media.originKey];
    exchange.tagFieldOf = this.#tagFieldOf;
    const served = this.#targets.admit(exchange, target);
    try {
      return this.#send(exchange, served)?.catch((error: unknown) =>
        this.#sendAbsent(exchange, served, error),
      );
    } catch (error) {
      return this.#sendAbsent(exchange, served, error);
    }
  }

  /** Responds like for a missing original, if the error hides a block that was found late; any other error is thrown. */
  #sendAbsent(exchange: Exchange, target: MediaTarget, error: unknown): Promise<void> | undefined {
    if (!isHidden(error)) throw error;
    exchange.record.trace.restart();
    return this.#send(exchange, { ...target, ...absentOf(target.media) });
  }

  #send(exchange: Exchange, served: MediaTarget): Promise<void> | undefined {
    const { media, key } = served;
    if (media.isPassthrough) return this.#sendOriginal(exchange, served);
    const hit = this.#parts.media.findHit(media, key, exchange.record.trace);
    if (hit === undefined) return this.#sendRendering(exchange, served);
    this.#sendResult(exchange, hit, served);
    return undefined;
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
      isCurrent: (validators) =>
        !isPreconditionFailed(request.headers, validators) &&
        isNotModified(request.headers, validators, false),
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
    const fields = formatValidators(served.validators, robotsTag, exchange.tagField);
    exchange.respond(304, fields, undefined, this.#cacheControlOf(target));
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

  /** An original that was replaced meanwhile is opened once more, and then sent whole. */
  async #sendOriginal(exchange: Exchange, target: MediaTarget): Promise<void> {
    try {
      await this.#sendOpened(exchange, target);
    } catch (error) {
      if (!(error instanceof OriginalReplaced)) throw error;
      delete exchange.request.headers.range;
      await this.#sendOpened(exchange, target).catch((again: unknown) => {
        throw again instanceof OriginalReplaced
          ? new MediaError('ORIGIN_ERROR', { cause: again })
          : again;
      });
    }
  }

  async #sendOpened(exchange: Exchange, target: MediaTarget): Promise<void> {
    const { blocks } = this.#parts;
    const { headers, method } = exchange.request;
    const isChecked = blocks?.judgesBytes === true;
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
      tagField: exchange.tagField,
    });
    const cacheControl = this.#cacheControlOf(target, original.maxAgeSeconds);
    let isOpened = false;
    try {
      const { originKey, url } = target.media;
      const sent = { originKey, url, sha256: original.sha256, etag: original.state };
      blocks?.check(sent);
      isOpened = await exchange.sendStream(head, cacheControl, async (first, last) => {
        const body = await original.stream(first, last);
        if (blocks === undefined) return body;
        if (isChecked || !blocks.judgesBytes) return blocks.watch(sent, body);
        // The first block by SHA-256 came while the body was opened unchecked.
        body.destroy();
        throw new OriginalReplaced();
      });
    } finally {
      if (!isOpened) original.discard();
    }
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
    exchange.record.noteTarget('default avatar');
    const avatar = this.#defaultAvatars[Number(index)];
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.record.trace.outcome = HIT;
    exchange.sendBytes(avatar, this.#avatarCacheControl);
  }
}

/**
 * Formats the `Content-Disposition` of the response to a request: attachments have a name to be shown or saved under, assets
 * have none, and other files only have one if a browser must not show their bytes. A transformed attachment is named after
 * what it became: a `photo.png` that is a WebP now is saved as `photo.webp`.
 *
 * @param isDownload whether the request asks for a body to be saved
 */
function formatMediaDisposition(
  { resource, filename, isPassthrough }: MediaRequest,
  contentType: string,
  isDownload = false,
): string | undefined {
  if (filename === undefined) return isDownload ? 'attachment' : undefined;
  const name = isPassthrough ? filename : rename(filename, contentType);
  const disposition = isDownload ? 'attachment' : dispositionOf(contentType, name);
  if (resource !== 'attachment' && disposition === 'inline') return undefined;
  return formatContentDisposition(disposition, name);
}

function rename(filename: string, mimeType: string): string {
  const format = Object.values(outputFormats).find((row) => row.mimeType === mimeType);
  if (format === undefined) return filename;
  const { stem = filename, extension = '' } =
    /^(?<stem>.+)\.(?<extension>[a-z][a-z0-9]{1,4}|3g[p2])$/isu.exec(filename)?.groups ?? {};
  return format.extensions.some((known) => known === extension.toLowerCase())
    ? filename
    : `${stem}.${format.extensions[0]}`;
}

/** Returns a function that tells the tags of an original, and remembers them: they take some 15 µs, as long as a hit. */
function rememberFields(tags: EdgeTags): (originKeys: readonly string[]) => TagField {
  const fields = new LRUCache<string, TagField>({
    max: MAX_TAG_FIELDS,
    memoMethod: (originKey) => tags.fieldOf(originKey),
  });
  return ([originKey = '', ...more]) =>
    more.length === 0 ? fields.memo(originKey) : tags.fieldOf(originKey, ...more);
}
