import { Readable } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { MediaError } from '../../contract/errors.ts';
import { type MediaRequest, resultKey } from '../../contract/media-request.ts';
import { PIPELINE_RELEASE } from '../../contract/pipeline-release.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { ByteRange, Clock } from '../ports.ts';
import { Semaphore } from '../semaphore.ts';
import { siteError } from '../site-failure.ts';
import { validatorsOf } from '../validators.ts';
import type { WaitQueueLimits } from '../wait-queue.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import type { MetadataCache } from './metadata-cache.ts';
import {
  OriginalReplaced,
  type PassthroughMedia,
  type PassthroughOptions,
} from './passthrough-media.ts';
import { peekSite, SiteStream } from './site-stream.ts';
import type { ExternalMedia, SiteContent, SiteRequest } from './sites.ts';

/** What is passed on from other sites with. */
export interface SitePassthroughParts {
  readonly external: ExternalMedia;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  /** Of the requests that wait for a stream. */
  readonly waiting: WaitQueueLimits;
}

/** What is known of something by its first bytes. */
interface Beginning extends Pick<SiteContent, 'sizeBytes' | 'lastModified' | 'freshForMs'> {
  readonly prefix: Uint8Array;
  readonly contentType: string;
  /** The site's strong tag; without one, no part of it can be told to be of the same state. */
  readonly tag: string | undefined;
  /** Whether the site gives parts; not asked for one, it is taken to. */
  readonly hasParts: boolean;
}

/** One whose parts can be asked for. */
interface KnownBeginning extends Beginning {
  readonly tag: string;
  readonly sizeBytes: number;
  readonly untilMs: number;
}

/** Bytes that are coming, from the first on. */
interface OpenStream {
  /** `undefined`: to the end, wherever that is. */
  readonly last: number | undefined;
  readonly body: SiteStream;
}

/** Pictures that are shown as they are: those that are decoded here (contract §8). */
const PICTURES: ReadonlySet<string> = new Set(
  [
    ...['png', 'apng', 'jpeg', 'webp', 'gif', 'avif'],
    ...['heic', 'heif', 'heic-sequence', 'heif-sequence'],
  ].map((name) => `image/${name}`),
);

/** How many beginnings are remembered: each has some 4 kB. */
const MAX_BEGINNINGS = 1_000;

/** Passes on what other sites have, picture, video and sound, as it is: streamed, never held in memory or kept. */
export class SitePassthrough {
  readonly #parts: SitePassthroughParts;
  /** Bounds how many streams are open at once. */
  readonly #semaphore: Semaphore;
  readonly #known = new LRUCache<string, KnownBeginning>({ max: MAX_BEGINNINGS });

  constructor(parts: SitePassthroughParts) {
    this.#parts = parts;
    this.#semaphore = new Semaphore({ ...parts.waiting, slots: parts.external.limits.maxStreams });
  }

  /**
   * Opens something; the caller must `stream` or `discard` it.
   *
   * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `MEDIA_TOO_LARGE`, and what `Sites.open` throws
   */
  async open(
    request: MediaRequest,
    url: string,
    { signal, trace, isPart, beginning }: PassthroughOptions,
  ): Promise<PassthroughMedia> {
    const { metadata, clock } = this.#parts;
    const { originKey } = request;
    trace.outcome = { kind: 'bypass' };
    const failure = metadata.findFailure(originKey);
    if (failure !== undefined) throw failure;
    if (metadata.isMissing(originKey)) throw new MediaError('UNKNOWN_MEDIA');
    const describe = (seen: Beginning, stream?: OpenStream): PassthroughMedia => {
      const { prefix, contentType, tag, hasParts, sizeBytes, lastModified, freshForMs } = seen;
      const etag =
        tag && validatorsOf({ etag: tag, lastModified }, resultKey(request), PIPELINE_RELEASE).etag;
      return {
        validators: { etag, lastModified },
        sizeBytes,
        contentType,
        hasRanges: etag !== undefined && sizeBytes !== undefined && hasParts,
        maxAgeSeconds: freshForMs / 1000,
        discard: () => stream?.body.destroy(),
        stream: async (first, last) => {
          if (stream !== undefined && first === 0 && last === stream.last) return stream.body;
          stream?.body.destroy();
          if (last !== undefined && last < prefix.length) {
            return Readable.from([prefix.subarray(first, last + 1)]);
          }
          return this.#openPart(originKey, { url, signal, range: { first, last } }, tag);
        },
      };
    };
    const known = isPart ? this.#known.get(originKey) : undefined;
    if (known !== undefined && clock.nowMs() < known.untilMs) return describe(known);
    return trace.time('origin', async (visit) => {
      visit.span?.setAttributes({ 'darkroom.origin.part': isPart ? 'state' : 'body' });
      try {
        const range = isPart ? rangeOfBeginning(beginning) : undefined;
        const opened = await trace.show('fetch', () => this.#openBeginning({ url, signal, range }));
        if (range !== undefined) this.#remember(originKey, opened.beginning);
        return describe(opened.beginning, opened.stream);
      } catch (error) {
        metadata.noteError(originKey, error);
        throw error;
      }
    });
  }

  purge(fits: (originKey: string) => boolean): void {
    deleteWhere(this.#known, fits);
  }

  /** Asks for the whole, or for a part at its beginning, and looks at the first bytes. */
  async #openBeginning(
    request: SiteRequest,
  ): Promise<{ readonly beginning: Beginning; readonly stream: OpenStream }> {
    const content = await this.#ask(request);
    const { body, part, validators, sizeBytes, lastModified, freshForMs } = content;
    const { maxBytes, firstBytesTimeoutMs } = this.#parts.external.limits;
    try {
      if (sizeBytes !== undefined && sizeBytes > maxBytes) {
        const cause = new Error(`${sizeBytes} bytes, at most ${maxBytes}`);
        throw new MediaError('MEDIA_TOO_LARGE', { cause });
      }
      const tag = validators.etag?.startsWith('"') ? validators.etag : undefined;
      const prefix = await peekSite(body, SNIFF_BYTES, firstBytesTimeoutMs, request.signal);
      const contentType = await sniffContentType(prefix);
      if (!/^(?:video|audio)\//.test(contentType) && !PICTURES.has(contentType)) {
        const cause = new Error(`It is ${contentType}.`);
        throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause });
      }
      const hasParts = part !== undefined || request.range === undefined;
      const beginning = {
        ...{ prefix, contentType, tag, hasParts },
        ...{ sizeBytes, lastModified, freshForMs },
      };
      // Its parts cannot be told to belong together: it is fetched whole.
      if (part !== undefined && tag === undefined) {
        body.destroy();
        return await this.#openBeginning({ ...request, range: undefined });
      }
      const last = part?.last ?? (sizeBytes === undefined ? undefined : sizeBytes - 1);
      return { beginning, stream: { last, body: new SiteStream(prefix, body, maxBytes) } };
    } catch (error) {
      body.destroy();
      throw error;
    }
  }

  async #ask(request: SiteRequest): Promise<SiteContent> {
    const leave = await this.#semaphore.enter(request.signal);
    try {
      const content = await this.#parts.external.sites.open(request);
      if (content.kind === 'unchanged') {
        throw siteError('Nothing was asked about.', { reason: 'response' });
      }
      content.body.once('close', leave);
      return content;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** A part of the very state whose beginning is known. */
  async #openPart(
    originKey: string,
    request: SiteRequest,
    ifRange: string | undefined,
  ): Promise<Readable> {
    try {
      const content = await this.#ask({ ...request, ifRange });
      if (content.part !== undefined) return content.body;
      // It is of another state now, or the site knows no ranges after all.
      content.body.destroy();
      this.#known.delete(originKey);
      throw new OriginalReplaced();
    } catch (error) {
      this.#parts.metadata.noteError(originKey, error);
      throw error;
    }
  }

  #remember(originKey: string, beginning: Beginning): void {
    const { tag, hasParts, sizeBytes, freshForMs } = beginning;
    if (tag === undefined || sizeBytes === undefined || !hasParts) return;
    const untilMs = this.#parts.clock.nowMs() + freshForMs;
    this.#known.set(originKey, { ...beginning, tag, sizeBytes, untilMs });
  }
}

/** Enough to know what it is: the beginning that is wanted, where it is longer; or no more than that. */
function rangeOfBeginning(wanted: ByteRange | undefined): ByteRange {
  const least = SNIFF_BYTES - 1;
  if (wanted === undefined) return { first: 0, last: least };
  // A last byte of 0 is a number like any other, and no absent one.
  return { first: 0, last: wanted.last === undefined ? undefined : Math.max(wanted.last, least) };
}
