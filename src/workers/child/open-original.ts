import sharp, { type Sharp } from 'sharp';
import { MediaError } from '../../contract/errors.ts';
import { isGreyProfile } from '../../formats/icc-profile.ts';
import type { Orientation, Size } from '../../formats/image-facts.ts';
import { dropJunk } from '../../formats/jpeg/jpeg-segments.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { convertPixels } from './colour-conversion.ts';
import { fromPixels, type Pixels, toPixels } from './pixels.ts';

/** Frames of an animation to decode, from `first` on. */
export interface FrameRange {
  readonly first: number;
  readonly count: number;
}

/**
 * How strict the decoder is. `warning` stops at everything it notices; `error` lets pass what
 * libjpeg merely warns of.
 */
export type Strictness = 'warning' | 'error';

/** From which factor on a WebP's decoder reduces, and how much of it the filter then does: see `reducedSize`. */
const LEAST_REDUCTION = 6;
const LEFT_TO_FILTER = 3;

/**
 * Warnings of libjpeg that leave the picture whole (contract §3: "junk between markers, a wrong but
 * harmless header field"). Its other warnings (a bad Huffman code, a missing restart marker, a data
 * segment that ends early) mean that a part of the picture is lost.
 */
const HARMLESS_WARNINGS = [
  /extraneous bytes before marker/,
  /Invalid SOS parameters for sequential JPEG/,
  /Unknown Adobe color transform code/,
  /unknown JFIF revision number/,
  /Inconsistent progression sequence/,
];

/**
 * Opens an original for sharp; nothing is decoded yet.
 *
 * @param frames of an animation; `undefined`: the image that is shown as a still. That is the first frame, and
 *   of a file of several images (AVIF) its primary one, which page 0 need not be
 * @param ignoreIcc whether samples stay as they are stored, whatever profile there is
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

/**
 * Throws unless an original was decoded to the size that its header tells, by which all is planned.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA`
 */
export function checkDecodedSize(decoded: Size, planned: Size): void {
  const { widthPx, heightPx } = decoded;
  if (widthPx === planned.widthPx && heightPx === planned.heightPx) return;
  const says = `${planned.widthPx}×${planned.heightPx}`;
  throw new MediaError('UNPROCESSABLE_MEDIA', {
    cause: new Error(`Decoded ${widthPx}×${heightPx} px; the header says ${says}`),
  });
}

/**
 * Opens what is shown as a still, upright, as an image of which sharp makes sRGB. Where sharp cannot, it is decoded
 * and converted already (`convertPixels`).
 *
 * @param shape `size` that its header tells, not yet oriented; `orientation` to undo
 * @throws MediaError `UNPROCESSABLE_MEDIA` if it has another size
 */
export async function openStill(
  original: Uint8Array,
  job: RenderJob,
  { size, orientation }: { readonly size: Size; readonly orientation: Orientation },
  strictness: Strictness,
): Promise<Sharp> {
  const open = (ignoreIcc: boolean): Sharp => {
    const image = openOriginal(original, job, undefined, strictness, ignoreIcc);
    return orientation === 1 ? image : image.autoOrient();
  };
  const image = open(false);
  const metadata = await image.metadata();
  checkDecodedSize({ widthPx: metadata.width, heightPx: metadata.height }, size);
  const isDeep = metadata.depth === 'ushort';
  const isTaggedGrey = metadata.format === 'heif' && isGreyProfile(metadata.icc);
  if (!isDeep && !isTaggedGrey && job.gamma === undefined) {
    const isSingle = metadata.format === 'webp' && metadata.pages === undefined;
    const reduced = isSingle && orientation === 1 ? reducedSize(job) : undefined;
    return reduced === undefined ? image : fromPixels(await decodeReduced(image, reduced));
  }
  const pixels = await convertPixels(open(true), metadata, job.gamma);
  return pixels === undefined ? open(true) : fromPixels(pixels);
}

/**
 * How large a WebP is decoded that is reduced to a sixth or less. Its decoder can reduce to any size, at less than
 * it costs to decode all pixels and filter them, but takes plain means; with three times the wanted size left to
 * the filter, the result is as like to an exact reduction (`npm run bench:quality`).
 */
function reducedSize({ originalSize, resize, size }: RenderJob): Size | undefined {
  if (resize === 'none') return undefined;
  const { widthPx, heightPx } = originalSize;
  const factor = Math.min(widthPx / size.widthPx, heightPx / size.heightPx);
  if (factor < LEAST_REDUCTION) return undefined;
  const scale = LEFT_TO_FILTER / factor;
  return { widthPx: Math.round(widthPx * scale), heightPx: Math.round(heightPx * scale) };
}

function decodeReduced(image: Sharp, { widthPx, heightPx }: Size): Promise<Pixels> {
  const box = { width: widthPx, height: heightPx, fit: 'fill', fastShrinkOnLoad: true } as const;
  return toPixels(image.resize(box).toColourspace('srgb'));
}

/**
 * Runs a transform with the strictest decoder. Where it stopped at something harmless, again without
 * junk between the segments; and where even that is not to its taste, with a lenient one, which then
 * takes a JPEG's other damage too: of a file with both, nothing but the first warning is known.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE` if the original is at fault; what
 *   the transform threw if the original decodes well without it, for then the bug is ours
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
        throw await blame(error, bytes, job, frames, strictness);
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

/** libvips decodes while it encodes, and says "unable to write" for both: so decode once, alone. */
async function blame(
  error: unknown,
  original: Uint8Array,
  job: RenderJob,
  frames: FrameRange | undefined,
  strictness: Strictness,
): Promise<unknown> {
  if (error instanceof MediaError) return error;
  try {
    await openOriginal(original, job, frames, strictness).stats();
    // An interlaced PNG whose rows are damaged passes that, and nothing else. Last, for it takes the
    // memory of all pixels.
    await openOriginal(original, job, frames, strictness).raw().toBuffer();
  } catch (cause) {
    const isTooLarge = cause instanceof Error && /exceeds pixel limit/.test(cause.message);
    return new MediaError(isTooLarge ? 'MEDIA_TOO_LARGE' : 'UNPROCESSABLE_MEDIA', { cause });
  }
  return error;
}
