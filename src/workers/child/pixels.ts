import sharp, { type Sharp } from 'sharp';
import type { Orientation, Size } from '../../formats/image-header.ts';
import type { RenderJob } from '../../pipeline/ports.ts';

/** Pixels of one frame, or of several one below the other; sRGB of 8 or 16 bits. */
export interface Pixels<Samples extends Uint8Array | Uint16Array = Uint8Array> {
  readonly data: Samples;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly channels: 1 | 2 | 3 | 4;
}

/** Returns pixels as an image for sharp. @param frame size of one frame of an animation */
export function fromPixels(
  { data, widthPx, heightPx, channels }: Pixels<Uint8Array | Uint16Array>,
  frame?: Size,
): Sharp {
  const pages = frame && { pageHeight: frame.heightPx };
  return sharp(data, {
    raw: { width: widthPx, height: heightPx, channels, ...pages },
    limitInputPixels: false, // our own pixels: never more than were decoded
  });
}

export async function toPixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, widthPx: info.width, heightPx: info.height, channels: info.channels };
}

/** Clockwise degrees that undo EXIF orientations from 1 on, after the flip that undoes some (EXIF 2.32 §4.6.4). */
const ROTATIONS = [0, 0, 180, 180, 270, 90, 90, 270];
const FLIPPED: readonly Orientation[] = [2, 4, 5, 7];

/** Undoes an EXIF orientation. */
export async function autoOrient(image: Sharp, orientation: Orientation): Promise<Sharp> {
  if (orientation === 1) return image;
  // sharp flips before it rotates.
  const rotated = image.flop(FLIPPED.includes(orientation)).rotate(ROTATIONS[orientation - 1]);
  return fromPixels(await toPixels(rotated));
}

/** Maximum size of a small WebP, whose decoder may reduce to the final size, in pixels. */
export const MAX_SMALL_PIXELS = 256 * 256;

/** Minimum factor from which the decoder reduces a small still. */
const MIN_SMALL_FACTOR = 2;

/**
 * Whether the decoder reduces to the final size. A WebP's decoder averages pixels: for a small still, that takes half of
 * the time for 0.7 points of SSIMULACRA2, but it would cost 2 points for a photograph (bench/RESULTS.md).
 */
export function isReducedByDecoder(job: RenderJob): boolean {
  const { source, isPlain, originalSize, size, shrinksOnLoad } = job;
  if (!shrinksOnLoad || source !== 'webp') return shrinksOnLoad;
  const isSmall = originalSize.widthPx * originalSize.heightPx <= MAX_SMALL_PIXELS;
  const widthFactor = originalSize.widthPx / size.widthPx;
  const heightFactor = originalSize.heightPx / size.heightPx;
  return isPlain === true && isSmall && Math.min(widthFactor, heightFactor) >= MIN_SMALL_FACTOR;
}

/** Scales to the planned size, or scales to cover it and crops to the centre. */
export function resize(image: Sharp, job: RenderJob): Sharp {
  const { resize: kind, size } = job;
  if (kind === 'none') return image;
  return image.resize({
    width: size.widthPx,
    height: size.heightPx,
    fit: kind === 'crop' ? 'cover' : 'fill',
    position: 'centre',
    fastShrinkOnLoad: isReducedByDecoder(job),
  });
}
