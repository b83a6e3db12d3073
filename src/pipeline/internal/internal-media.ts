import { MediaError } from '../../contract/errors.ts';
import { canonicalUrlOf, findOwnTarget } from '../../contract/external-url.ts';
import {
  formatMetadata,
  formatSniffed,
  type InternalSubject,
} from '../../contract/internal-request.ts';
import { parseOwnUrl, type TargetReading } from '../../contract/media-request.ts';
import type { MediaMetadata } from '../../contract/metadata.ts';
import { resultKey } from '../../contract/result-key.ts';
import { externalKeyOf } from '../../contract/signing/external-path.ts';
import { unlessAborted } from '../abort.ts';
import type { BlockGuard } from '../blocks/block-guard.ts';
import type { MediaServices } from '../media-pipeline.ts';
import { pictureRequest, unlessUnreadable } from '../metadata/describe.ts';
import { SNIFF_BYTES, sniffContentType } from '../originals/content-sniff.ts';
import { sha256Of } from '../originals/digests.ts';
import type { OriginalFlight } from '../originals/original-flight.ts';
import { type OriginalReader, replaced } from '../originals/original-reader.ts';
import type { Clock, GivenOriginals } from '../ports.ts';
import { RequestTrace } from '../request-trace.ts';

interface InternalMediaParts {
  readonly originals: MediaServices;
  /** Uploads that the platform has not taken yet; `undefined`: there is no such storage. */
  readonly uploads: MediaServices | undefined;
  /** Media that came with the request itself, or were fetched for it. */
  readonly given: MediaServices & { readonly source: GivenOriginals };
  /** Names by which the platform means these storages. */
  readonly buckets: {
    readonly originals: string | undefined;
    readonly uploads: string | undefined;
  };
  readonly blocks: Pick<BlockGuard, 'check' | 'checkDigest' | 'judgesBytes'> | undefined;
  readonly reading: TargetReading;
  /** Largest media that are given back as base64, in bytes. */
  readonly maxGivenBytes: number;
  readonly clock: Clock;
}

/** Media, where they are read from, until `release` is called. */
interface Found {
  readonly services: MediaServices;
  readonly originKey: string;
  readonly release: () => void;
}

const THUMBNAIL_PX = 512;

/** Longest edges of a frame in pixels, the first of which that fits is sent; noise does not fit at the first one. */
const FRAME_EDGES_PX = [1_024, 512];

/** Longest frame in base64: the platform reads 512 KiB, with the JSON around it. */
const MAX_FRAME_LENGTH = 511 * 1024;

/** Tells the platform's API about media, and shows them small (contract §14), by the services of the public routes. */
export class InternalMedia {
  readonly #parts: InternalMediaParts;

  constructor(parts: InternalMediaParts) {
    this.#parts = parts;
  }

  /**
   * Returns the metadata of media.
   *
   * @param wantsBytes whether the media themselves are told as well
   * @throws MediaError
   */
  async describe(subject: InternalSubject, wantsBytes: boolean, signal: AbortSignal) {
    const { blocks } = this.#parts;
    return this.#use(subject, signal, async (found) => {
      const metadata = await askMetadata(found, true, signal);
      blocks?.checkDigest(metadata.sha256 ?? undefined);
      const bytes = wantsBytes ? await this.#readWhole(found, signal) : undefined;
      // This is a second read, which may have found another state.
      if (bytes !== undefined && blocks?.judgesBytes) blocks.checkDigest(sha256Of(bytes));
      return formatMetadata(metadata, bytes);
    });
  }

  /** Tells the media type by the first bytes. @throws MediaError */
  sniff(subject: InternalSubject, signal: AbortSignal) {
    return this.#use(subject, signal, (found) =>
      useOriginal(found, async (original) => {
        const { identity, reader } = await unlessAborted(original.openByRanges(), signal);
        const { etag } = await found.services.originals.checkBytes(original, identity, signal);
        if (etag !== identity.etag) throw replaced();
        return formatSniffed(await sniffContentType(await reader.read(0, SNIFF_BYTES, signal)));
      }),
    );
  }

  /** Renders a picture inside of a box, or a video's poster at its own size, as WebP. @throws MediaError */
  thumbnail(subject: InternalSubject, signal: AbortSignal): Promise<Uint8Array> {
    return this.#use(subject, signal, async (found) => {
      const metadata = await askMetadata(found, false, signal);
      const maxPx = metadata.kind === 'video' ? Number.POSITIVE_INFINITY : THUMBNAIL_PX;
      return this.#render(found, metadata, 'webp', maxPx, signal);
    });
  }

  /** Renders the one frame that is shown of media, as JPEG; none of media that have none. @throws MediaError */
  frames(subject: InternalSubject, signal: AbortSignal) {
    return this.#use(subject, signal, async (found) => {
      const metadata = await askMetadata(found, false, signal);
      if (!metadata.transformable) return { frames: [] };
      for (const edgePx of FRAME_EDGES_PX) {
        const jpeg = await unlessUnreadable(() =>
          this.#render(found, metadata, 'jpeg', edgePx, signal),
        );
        if (jpeg === undefined) break;
        const base64 = Buffer.from(jpeg).toString('base64');
        if (base64.length > MAX_FRAME_LENGTH) continue;
        return { frames: [{ timestamp: 0, mime_type: 'image/jpeg', base64 }] };
      }
      return { frames: [] };
    });
  }

  async #use<Result>(
    subject: InternalSubject,
    signal: AbortSignal,
    use: (found: Found) => Promise<Result>,
  ): Promise<Result> {
    const found = await this.#find(subject, signal);
    try {
      return await use(found);
    } finally {
      found.release();
    }
  }

  async #find(subject: InternalSubject, signal: AbortSignal): Promise<Found> {
    const { originals, uploads, buckets } = this.#parts;
    if (subject.type === 'base64') return this.#give(subject.bytes);
    if (subject.type === 'external') return this.#findUrl(subject.url, signal);
    const { key: originKey } = subject;
    const bucket = subject.type === 's3' ? subject.bucket : buckets.uploads;
    const release = (): void => undefined;
    this.#parts.blocks?.check({ originKey });
    if (bucket !== undefined && bucket === buckets.uploads && uploads !== undefined) {
      return { services: uploads, originKey, release };
    }
    if (bucket === undefined || bucket !== buckets.originals) throw unknownBucket;
    return { services: originals, originKey, release };
  }

  /** Finds what a URL names: media of ours in the storage, whatever their signatures say, or those of another site. */
  async #findUrl(text: string, signal: AbortSignal): Promise<Found> {
    const { originals, blocks, reading } = this.#parts;
    let url = text;
    if (findOwnTarget(text, reading.publicUrls ?? []) !== undefined) {
      const parsed = parseOwnUrl(text, '', reading);
      if (parsed?.kind === 'invalid') throw parsed.error;
      if (parsed?.kind !== 'media') throw new MediaError('UNKNOWN_MEDIA');
      const { originKey, url: wrapped } = parsed.request;
      if (wrapped === undefined) {
        blocks?.check({ originKey });
        return { services: originals, originKey, release: () => undefined };
      }
      url = wrapped;
    }
    if (reading.readExternal === undefined) throw new MediaError('UNKNOWN_MEDIA');
    const canonical = canonicalUrlOf(url) ?? url;
    const name = { originKey: externalKeyOf(canonical), url: canonical };
    blocks?.check(name);
    const { work, leave } = originals.originals.join(name);
    try {
      const trace = new RequestTrace(this.#parts.clock);
      const options = { isIdentityEnough: false, hasResult: false, trace };
      const { failure } = await unlessAborted(work.identify(options), signal);
      if (failure !== undefined) throw failure;
      const held = await unlessAborted(work.load(), signal);
      const bytes = 'bytes' in held ? held.bytes : await this.#readVideo(held.reader, signal);
      const found = this.#give(bytes);
      return {
        ...found,
        release: () => {
          found.release();
          leave();
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Reads another site's video whole, since its facts include a digest. */
  async #readVideo(reader: OriginalReader, signal: AbortSignal): Promise<Uint8Array> {
    const isTooLarge = reader.isCut || reader.sizeBytes > this.#parts.maxGivenBytes;
    if (isTooLarge) throw new MediaError('MEDIA_TOO_LARGE');
    return unlessAborted(reader.readAll(), signal);
  }

  #give(bytes: Uint8Array): Found {
    const { given } = this.#parts;
    return { services: given, ...given.source.hold(bytes) };
  }

  async #render(
    { services, originKey }: Found,
    { width, height }: MediaMetadata,
    format: 'webp' | 'jpeg',
    maxPx: number,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    if (width === null || height === null) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const edgePx = Math.max(width, height) > maxPx ? maxPx : undefined;
    const size = { widthPx: width, heightPx: height };
    const request = pictureRequest(originKey, size, edgePx, format, 'high');
    const served = await services.media.serve(
      { media: request, key: resultKey(request) },
      {
        signal,
        trace: new RequestTrace(this.#parts.clock),
        isConditional: false,
        matchesCondition: () => false,
      },
    );
    if (served.kind === 'redirect') throw served.error;
    if (served.kind !== 'rendition') throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    return served.result.body;
  }

  #readWhole(found: Found, signal: AbortSignal): Promise<Uint8Array> {
    return useOriginal(found, async (original) => {
      const { reader } = await unlessAborted(original.openByRanges(), signal);
      if (reader.sizeBytes > this.#parts.maxGivenBytes) throw new MediaError('MEDIA_TOO_LARGE');
      return unlessAborted(reader.readAll(), signal);
    });
  }
}

const unknownBucket = new MediaError('INVALID_FORM_BODY', {
  faults: [{ path: 'bucket', message: 'Expected the bucket of originals, or that of uploads.' }],
});

function askMetadata(
  { services, originKey }: Found,
  wantsAll: boolean,
  signal: AbortSignal,
): Promise<MediaMetadata> {
  const question = { originKey, wantsPlaceholder: wantsAll, wantsSha256: wantsAll };
  return services.metadata.describe(question, signal);
}

async function useOriginal<Result>(
  { services, originKey }: Found,
  use: (original: OriginalFlight) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const controls = { signal: controller.signal, keep: () => undefined };
  try {
    return await use(services.originals.begin({ originKey }, controls));
  } finally {
    controller.abort();
  }
}
