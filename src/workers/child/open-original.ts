import sharp, { type Sharp } from 'sharp';
import { MediaError } from '../../contract/errors.ts';
import { corruptMedia } from '../../formats/byte-reader.ts';
import { isGreyProfile } from '../../formats/icc-profile.ts';
import type { Orientation, Size } from '../../formats/image-header.ts';
import { dropJunk } from '../../formats/jpeg/jpeg-segments.ts';
import { formatStoredPng } from '../../formats/png/png-chunks.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import {
  convertPixels,
  decodeSamples,
  hasCompatibleProfile,
  isSrgb,
  type SampleCoding,
  toSrgbPixels,
} from './colour-conversion.ts';
import { fromPixels, isReducedByDecoder, type Pixels, toPixels } from './pixels.ts';
import { mapToSrgb } from './video/map-to-srgb.ts';

export interface FrameRange {
  readonly first: number;
  readonly count: number;
}

/** `warning` fails at any damage; `error` ignores damage that only makes libjpeg warn. */
export type Strictness = 'warning' | 'error';

/**
 * Minimum factor from which the WebP decoder reduces, and the reduction left to the filter. A lossless rendering is
 * reduced later: 24 megapixels at full size do not fit into a worker of 512 MiB.
 */
export const REDUCTION = { minFactor: 3, leftToFilter: 2 };
const LOSSLESS_REDUCTION = { minFactor: 6, leftToFilter: 3 };

/** libjpeg's warnings that leave the image complete (contract §3). After others, a part of the image is missing. */
const HARMLESS_WARNINGS = [
  /extraneous bytes before marker/,
  /Invalid SOS parameters for sequential JPEG/,
  /Unknown Adobe color transform code/,
  /unknown JFIF revision number/,
  /Inconsistent progression sequence/,
];

/**
 * Opens an original with sharp, without decoding.
 *
 * @param frames omit for the still: the first frame, or an AVIF's primary image, which is not always page 0
 * @param ignoreIcc whether to keep samples as stored, despite a profile
 */
export function openOriginal(
  original: Uint8Array,
  { maxInputPixels }: RenderJob,
  frames: FrameRange | undefined,
  strictness: Strictness,
  ignoreIcc = false,
): Sharp {
  return sharp(original, {
    ...(frames && { page: frames.first, pages: frames.count }),
    failOn: strictness,
    ignoreIcc,
    limitInputPixels: maxInputPixels,
    sequentialRead: true,
  });
}

/** Throws `UNPROCESSABLE_MEDIA` if the decoded size differs from the header's. */
export function checkDecodedSize(decoded: Size, planned: Size): void {
  const { widthPx, heightPx } = decoded;
  if (widthPx === planned.widthPx && heightPx === planned.heightPx) return;
  const expected = `${planned.widthPx}×${planned.heightPx}`;
  throw corruptMedia(`Decoded ${widthPx}×${heightPx} px; the header declares ${expected}`);
}

interface Still {
  readonly size: Size;
  readonly orientation: Orientation;
  readonly coding?: SampleCoding | undefined;
}

/**
 * Opens the still of an original, auto-oriented. sharp converts the returned image to sRGB, or it is converted already
 * (`convertPixels`).
 *
 * @param still `size` from the header, before orientation; `coding` of samples to convert
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the decoder reports another size, unless the job `isPlain`
 */
export async function openStill(
  original: Uint8Array,
  job: RenderJob,
  still: Still,
  strictness: Strictness,
): Promise<Sharp> {
  const { size, orientation } = still;
  const open = (ignoreIcc: boolean): Sharp => {
    const image = openOriginal(original, job, undefined, strictness, ignoreIcc);
    return orientation === 1 ? image : image.autoOrient();
  };
  let image = open(false);
  let isSingleWebp = job.source === 'webp';
  // Reading metadata takes a separate pipeline, a tenth of an emoji's render.
  if (job.isPlain !== true) {
    const metadata = await image.metadata();
    checkDecodedSize({ widthPx: metadata.width, heightPx: metadata.height }, size);
    // libheif returns three channels for a grey AVIF, but the profile is for one.
    const isTaggedGrey = job.source === 'avif' && isGreyProfile(metadata.icc);
    const mapColours = job.codePoints && mapToSrgb(job.codePoints);
    const coding = still.coding ?? (mapColours && { mapColours });
    if (coding !== undefined) {
      const pixels = toSrgbPixels(await decodeSamples(open(true), metadata), coding);
      if (coding.profile === undefined) return fromPixels(pixels);
      if (isTaggedGrey) {
        const shallow = { ...metadata, depth: 'uchar' } as const;
        return fromPixels(
          (await convertPixels(fromPixels(pixels), shallow, undefined, true)) ?? pixels,
        );
      }
      const profiled = formatStoredPng(pixels, coding.profile);
      return openStill(profiled, job, { size, orientation: 1 }, strictness);
    }
    if (job.codePoints !== undefined) return open(true);
    const isDeep = metadata.depth === 'ushort';
    if (!isTaggedGrey && !hasCompatibleProfile(metadata)) return open(true);
    if (isDeep || isTaggedGrey || job.gamma !== undefined) {
      const pixels = await convertPixels(open(true), metadata, job.gamma, isTaggedGrey);
      return pixels === undefined ? open(true) : fromPixels(pixels);
    }
    if (isSrgb(metadata)) image = open(true);
    isSingleWebp = metadata.format === 'webp' && metadata.pages === undefined;
  }
  const reduced = isSingleWebp && orientation === 1 ? reducedSize(job) : undefined;
  return reduced === undefined ? image : fromPixels(await decodeReduced(image, reduced));
}

/**
 * Returns the size to which a WebP's decoder reduces, since filtering all pixels costs more. The decoder averages
 * pixels; with the last factor left to the filter, the result is as good as an exact reduction (bench/RESULTS.md).
 */
function reducedSize(job: RenderJob): Size | undefined {
  const { originalSize, resize, size } = job;
  if (resize === 'none' || isReducedByDecoder(job)) return undefined;
  const { minFactor, leftToFilter } = job.shrinksOnLoad ? REDUCTION : LOSSLESS_REDUCTION;
  const { widthPx, heightPx } = originalSize;
  const factor = Math.min(widthPx / size.widthPx, heightPx / size.heightPx);
  if (factor < minFactor) return undefined;
  const scale = leftToFilter / factor;
  return { widthPx: Math.round(widthPx * scale), heightPx: Math.round(heightPx * scale) };
}

function decodeReduced(image: Sharp, { widthPx, heightPx }: Size): Promise<Pixels> {
  const box = { width: widthPx, height: heightPx, fit: 'fill', fastShrinkOnLoad: true } as const;
  return toPixels(image.resize(box).toColourspace('srgb'));
}

/**
 * Runs a transform with the strictest decoder; after a harmless warning, without junk between segments; finally with a
 * lenient decoder, because libjpeg reports only the first warning. The lenient decoder also accepts other damage.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE` if the original is at fault; otherwise the transform's
 *   error, which is a bug
 */
export async function decodeStrictly<Result>(
  original: Uint8Array,
  job: RenderJob,
  frames: FrameRange | undefined,
  transform: (bytes: Uint8Array, strictness: Strictness) => Promise<Result>,
): Promise<Result> {
  let bytes = original;
  for (const strictness of ['warning', 'warning', 'error'] as const) {
    try {
      return await transform(bytes, strictness);
    } catch (error) {
      if (strictness === 'error' || !isHarmless(error)) {
        throw await toOriginalError(error, bytes, job, frames, strictness);
      }
      bytes = dropJunk(original);
    }
  }
  throw new Error('unreachable: the last attempt returns or throws');
}

function isHarmless(error: unknown): boolean {
  const message = error instanceof Error ? error.message : '';
  return HARMLESS_WARNINGS.some((pattern) => pattern.test(message));
}

/** Decodes without encoding to find the cause: libvips reports "unable to write" for either. */
async function toOriginalError(
  error: unknown,
  original: Uint8Array,
  job: RenderJob,
  frames: FrameRange | undefined,
  strictness: Strictness,
): Promise<unknown> {
  if (error instanceof MediaError) return error;
  try {
    await openOriginal(original, job, frames, strictness).stats();
    // Only this detects damaged rows of an interlaced PNG. Last, because it needs the memory of all pixels.
    await openOriginal(original, job, frames, strictness).raw().toBuffer();
  } catch (cause) {
    const isTooLarge = cause instanceof Error && /exceeds pixel limit/.test(cause.message);
    return new MediaError(isTooLarge ? 'MEDIA_TOO_LARGE' : 'UNPROCESSABLE_MEDIA', { cause });
  }
  return error;
}
