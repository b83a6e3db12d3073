import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { canonicalUrlOf, findLocalTarget } from '../../contract/external-url.ts';
import {
  formatMetadata,
  formatSniffed,
  type InternalSubject,
} from '../../contract/internal-request.ts';
import { parseLocalUrl } from '../../contract/media-request.ts';
import type { MediaMetadata } from '../../contract/metadata.ts';
import { resultKey } from '../../contract/result-key.ts';
import { externalKeyOf } from '../../contract/signing/external-path.ts';
import { unlessAborted } from '../abort.ts';
import type { MediaPipeline } from '../media-pipeline.ts';
import { pictureRequest, unlessUnreadable } from '../metadata/describe.ts';
import { namespacedKey } from '../originals/backend.ts';
import { SNIFF_BYTES, sniffContentType } from '../originals/content-sniff.ts';
import { sha256Of } from '../originals/digests.ts';
import { openByRanges } from '../originals/load-original.ts';
import type { OriginalReader } from '../originals/original-reader.ts';
import { replaced } from '../originals/replaced.ts';
import { RequestTrace } from '../request-trace.ts';

/** Media of a request, until `free` is called. */
interface ResolvedMedia {
  readonly originKey: string;
  /** Throws if the media are blocked. */
  readonly check: () => void;
  readonly free: () => void;
}

const THUMBNAIL_PX = 512;

/** Maximum edges of a frame in pixels; the first one that fits into `MAX_FRAME_LENGTH` is sent. */
const FRAME_EDGES_PX = [1_024, 512];

/** Maximum length of a frame in base64; the platform reads 512 KiB of JSON. */
const MAX_FRAME_LENGTH = 511 * 1024;

/**
 * Creates the responses to the platform's API (contract §14), by the services of the public routes.
 *
 * @param addInline keeps bytes of a request in the source of inline originals
 */
export function createInternalMedia(
  { parseOptions, uploads }: Pick<Config, 'parseOptions' | 'uploads'>,
  { bucket: originalsBucket, maxBodyBytes }: NonNullable<Config['internal']>,
  { media, metadata: metadataService, originals, blocks, clock }: MediaPipeline,
  addInline: (bytes: Uint8Array) => { readonly key: string; readonly free: () => void },
) {
  /** Maximum size of media returned as base64, in bytes. */
  const maxInlineBytes = Math.floor((maxBodyBytes * 3) / 4);
  const uploadsBucket = uploads?.bucket;

  /** Returns the metadata of media, and their bytes on request. @throws MediaError */
  async function describe(subject: InternalSubject, wantsBytes: boolean, signal: AbortSignal) {
    return use(subject, signal, async (found) => {
      const metadata = await fetchMetadata(found, true, signal);
      blocks?.checkDigest(metadata.sha256 ?? undefined);
      const bytes = wantsBytes ? await readWhole(found, signal) : undefined;
      // The second read may have found another state.
      if (bytes !== undefined && blocks?.hasDigestBlocks) blocks.checkDigest(sha256Of(bytes));
      return formatMetadata(metadata, bytes);
    });
  }

  /** Returns the media type of the first bytes. @throws MediaError */
  function sniff(subject: InternalSubject, signal: AbortSignal) {
    return use(subject, signal, (found) =>
      originals.use(found, async (original) => {
        const { identity, reader } = await unlessAborted(openByRanges(original), signal);
        const { etag } = await originals.checkBytes(original, identity, signal);
        if (etag !== identity.etag) throw replaced();
        return formatSniffed(await sniffContentType(await reader.read(0, SNIFF_BYTES, signal)));
      }),
    );
  }

  /** Renders an image within `THUMBNAIL_PX`, or a full-size video poster, as WebP. @throws MediaError */
  function thumbnail(subject: InternalSubject, signal: AbortSignal): Promise<Uint8Array> {
    return use(subject, signal, async (found) => {
      const metadata = await fetchMetadata(found, false, signal);
      const maxPx = metadata.kind === 'video' ? Number.POSITIVE_INFINITY : THUMBNAIL_PX;
      return render(found, metadata, 'webp', maxPx, signal);
    });
  }

  /** Renders one frame as JPEG; returns no frame for audio and damaged media. @throws MediaError */
  function frames(subject: InternalSubject, signal: AbortSignal) {
    return use(subject, signal, async (found) => {
      const metadata = await fetchMetadata(found, false, signal);
      if (!metadata.transformable) return { frames: [] };
      for (const edgePx of FRAME_EDGES_PX) {
        const jpeg = await unlessUnreadable(() => render(found, metadata, 'jpeg', edgePx, signal));
        if (jpeg === undefined) break;
        const base64 = Buffer.from(jpeg).toString('base64');
        if (base64.length > MAX_FRAME_LENGTH) continue;
        return { frames: [{ timestamp: 0, mime_type: 'image/jpeg', base64 }] };
      }
      return { frames: [] };
    });
  }

  async function use<Result>(
    subject: InternalSubject,
    signal: AbortSignal,
    use: (found: ResolvedMedia) => Promise<Result>,
  ): Promise<Result> {
    const found = await resolve(subject, signal);
    try {
      return await use(found);
    } finally {
      found.free();
    }
  }

  async function resolve(subject: InternalSubject, signal: AbortSignal): Promise<ResolvedMedia> {
    if (subject.type === 'base64') return keepInline(subject.bytes);
    if (subject.type === 'external') return resolveUrl(subject.url, signal);
    const bucket = subject.type === 's3' ? subject.bucket : uploadsBucket;
    if (bucket !== undefined && bucket === uploadsBucket) return resolveKey(subject.key, 'uploads');
    if (bucket !== undefined && bucket === originalsBucket) return resolveKey(subject.key);
    blocks?.check({ originKey: subject.key });
    throw unknownBucket;
  }

  function resolveKey(key: string, namespace?: 'uploads'): ResolvedMedia {
    const check = (): void => blocks?.check({ originKey: key });
    check();
    const originKey = namespace === undefined ? key : namespacedKey(namespace, key);
    return { originKey, check, free: () => undefined };
  }

  /** Resolves a URL: a local one in the storage without checking its signature, or one of another site. */
  async function resolveUrl(text: string, signal: AbortSignal): Promise<ResolvedMedia> {
    let url = text;
    if (findLocalTarget(text, parseOptions.publicUrls ?? []) !== undefined) {
      const parsed = parseLocalUrl(text, '', parseOptions);
      if (parsed?.kind === 'invalid') throw parsed.error;
      if (parsed?.kind !== 'media') throw new MediaError('UNKNOWN_MEDIA');
      const { originKey, url: wrapped } = parsed.request;
      if (wrapped === undefined) return resolveKey(originKey);
      url = wrapped;
    }
    if (parseOptions.readExternal === undefined) throw new MediaError('UNKNOWN_MEDIA');
    const canonical = canonicalUrlOf(url) ?? url;
    const name = { originKey: externalKeyOf(canonical), url: canonical };
    blocks?.check(name);
    const { work, leave } = originals.join(name);
    try {
      const trace = new RequestTrace(clock);
      const { failure } = await unlessAborted(work.identify(trace, 'bytes'), signal);
      if (failure !== undefined) throw failure;
      const loaded = await unlessAborted(work.load(), signal);
      const inline = keepInline(
        'bytes' in loaded ? loaded.bytes : await readVideo(loaded.reader, signal),
      );
      const free = (): void => {
        inline.free();
        leave();
      };
      return { ...inline, free };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Reads another site's video completely, since its metadata include a digest. */
  async function readVideo(reader: OriginalReader, signal: AbortSignal): Promise<Uint8Array> {
    const isTooLarge = reader.isTruncated || reader.sizeBytes > maxInlineBytes;
    if (isTooLarge) throw new MediaError('MEDIA_TOO_LARGE');
    return unlessAborted(reader.readAll(), signal);
  }

  function keepInline(bytes: Uint8Array): ResolvedMedia {
    const { key, free } = addInline(bytes);
    return { originKey: namespacedKey('inline', key), check: () => undefined, free };
  }

  async function render(
    { originKey, check }: ResolvedMedia,
    { width, height }: MediaMetadata,
    format: 'webp' | 'jpeg',
    maxPx: number,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    if (width === null || height === null) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const edgePx = Math.max(width, height) > maxPx ? maxPx : undefined;
    const size = { widthPx: width, heightPx: height };
    const request = pictureRequest(originKey, size, edgePx, format, 'high');
    check();
    const served = await media.serve(
      { media: request, cacheKey: resultKey(request) },
      {
        signal,
        trace: new RequestTrace(clock),
        isConditional: false,
        matchesCondition: () => false,
      },
    );
    if (served.kind === 'redirect') throw served.error;
    if (served.kind !== 'rendition') throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    return served.result.body;
  }

  function readWhole(found: ResolvedMedia, signal: AbortSignal): Promise<Uint8Array> {
    return originals.use(found, async (original) => {
      const { reader } = await unlessAborted(openByRanges(original), signal);
      if (reader.sizeBytes > maxInlineBytes) throw new MediaError('MEDIA_TOO_LARGE');
      return unlessAborted(reader.readAll(), signal);
    });
  }

  function fetchMetadata(
    { originKey }: ResolvedMedia,
    wantsAll: boolean,
    signal: AbortSignal,
  ): Promise<MediaMetadata> {
    const request = { originKey, wantsPlaceholder: wantsAll, wantsSha256: wantsAll };
    return metadataService.describe(request, signal);
  }

  return { describe, sniff, thumbnail, frames };
}

const unknownBucket = new MediaError('INVALID_FORM_BODY', {
  faults: [{ path: 'bucket', message: 'Expected the bucket of originals, or that of uploads.' }],
});
