import { isUnreadable } from '../../contract/errors.ts';
import type { OutputFormat, Quality } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { DerivedMetadata } from '../../contract/metadata.ts';
import { containerOf, readImageHeader } from '../../formats/containers.ts';
import type { Size } from '../../formats/image-header.ts';
import { readRangedHeader } from '../../formats/ranged-header.ts';
import type { AvMetadata } from '../../formats/video/av-metadata.ts';
import { sniffAv } from '../../formats/video/sniff-av.ts';
import { SNIFF_BYTES, sniffContentType } from '../originals/content-sniff.ts';
import { type Plan, planMedia, planPoster, type RenderLimits } from '../render/plan.ts';
import { orientedSize } from '../render/target-size.ts';

export interface DescribedBytes {
  readonly sizeBytes: number;
  /** Reads the bytes `[start, end)`, cut at the end of the original. */
  readonly read: (start: number, end: number) => Promise<Uint8Array>;
  /** Reads all bytes; returns `undefined` if there are too many. */
  readonly readAll: () => Promise<Uint8Array | undefined>;
  readonly inspect: () => Promise<AvMetadata>;
}

export interface Description {
  readonly metadata: DerivedMetadata;
  /** Plans a render. Omit without a picture, or if it is known to be damaged. */
  readonly plan?: ((request: MediaRequest) => Plan) | undefined;
}

const UNKNOWN_VALUES = {
  width: null,
  height: null,
  animated: null,
  frames: null,
  duration: null,
  codec: null,
  has_audio: null,
} as const;

/**
 * Describes an original by its bytes (contract §13), without decoding pixels. For a damaged one, returns what its
 * header declares.
 *
 * @param wantsPixels whether an image is rendered anyway, and may be read completely
 * @throws errors of the bytes; MediaError `TRANSFORM_TIMEOUT`, `OVERLOADED`
 */
export async function describe(
  bytes: DescribedBytes,
  limits: RenderLimits,
  wantsPixels: boolean,
): Promise<Description> {
  const { sizeBytes } = bytes;
  const prefix = await bytes.read(0, SNIFF_BYTES);
  const contentType = await sniffContentType(prefix);
  const file = { size: sizeBytes, content_type: contentType };
  if (containerOf(prefix) !== undefined) {
    return describeImage(file, bytes, limits, wantsPixels);
  }
  const av = sniffAv(prefix) === undefined ? undefined : await unlessUnreadable(bytes.inspect);
  const [type = ''] = contentType.split('/');
  const sniffed = type === 'video' || type === 'audio' ? type : undefined;
  // Without a known track, the first bytes are more reliable than the container.
  const kind = (av?.codec === undefined ? sniffed : undefined) ?? av?.kind ?? 'file';
  if (kind === 'file') return { metadata: { ...file, kind, ...UNKNOWN_VALUES } };
  return describeAv(file, kind, av, limits);
}

type FileProperties = Pick<DerivedMetadata, 'size' | 'content_type'>;

async function describeImage(
  file: FileProperties,
  bytes: DescribedBytes,
  limits: RenderLimits,
  wantsPixels: boolean,
): Promise<Description> {
  const head = await readRangedHeader(bytes);
  const all = wantsPixels || head?.isStill !== true ? await bytes.readAll() : undefined;
  const complete =
    all &&
    (await unlessUnreadable(async () => {
      const header = readImageHeader(all);
      containerOf(all)?.checkUndecoded?.(all);
      return header;
    }));
  const image = complete ?? head?.header;
  const isCounted = complete !== undefined || head?.isStill === true;
  const frames = isCounted && image !== undefined ? image.frames : undefined;
  const size = image && orientedSize(image);
  const metadata: DerivedMetadata = {
    ...file,
    kind: 'image',
    ...UNKNOWN_VALUES,
    width: size?.widthPx ?? null,
    height: size?.heightPx ?? null,
    animated: frames === undefined ? null : frames > 1,
    frames: frames === undefined || frames > limits.maxFrames ? null : frames,
    duration: image?.animation === undefined ? null : durationOf(image.animation.delaysMs),
  };
  const isDamaged = all !== undefined && complete === undefined;
  if (image === undefined || isDamaged) return { metadata };
  return { metadata, plan: (request) => planMedia(image, request, limits) };
}

/** Returns `undefined` for an unreadable original. @throws other errors */
export async function unlessUnreadable<Result>(
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

function describeAv(
  file: FileProperties,
  kind: 'video' | 'audio',
  av: AvMetadata | undefined,
  limits: RenderLimits,
): Description {
  const track = av?.video;
  const size = track && orientedSize({ ...track.size, orientation: track.orientation });
  const metadata: DerivedMetadata = {
    ...file,
    kind,
    ...UNKNOWN_VALUES,
    width: size?.widthPx ?? null,
    height: size?.heightPx ?? null,
    animated: kind === 'video' ? false : null,
    duration: av?.durationS ?? null,
    codec: av?.codec ?? null,
    has_audio: kind === 'audio' ? true : (av?.hasAudio ?? null),
  };
  if (kind === 'audio' || av === undefined) return { metadata };
  return { metadata, plan: (request) => planPoster(av, request, limits) };
}

function durationOf(delaysMs: readonly number[]): number {
  return Math.round(delaysMs.reduce((sum, delayMs) => sum + delayMs, 0)) / 1000;
}

/** Returns a request for a picture within a square; at its own size without `edgePx`. */
export function pictureRequest(
  originKey: string,
  { widthPx, heightPx }: Size,
  edgePx: number | undefined,
  format: OutputFormat,
  quality: Quality,
): MediaRequest {
  const isWide = widthPx >= heightPx;
  return {
    resource: 'attachment',
    originKey,
    url: undefined,
    filename: undefined,
    widthPx: isWide ? edgePx : undefined,
    heightPx: isWide ? undefined : edgePx,
    format,
    quality,
    isAnimated: false,
    isPassthrough: false,
  };
}
