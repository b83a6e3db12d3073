import type { Sharp } from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';
import { type OutputFormat, outputFormats } from '../../contract/image-formats.ts';
import { tooLargeMedia } from '../../formats/byte-reader.ts';
import type { Animation } from '../../formats/image-facts.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { encodeGif } from './gif/encode-gif.ts';
import { fromPixels, type Pixels, toPixels } from './pixels.ts';
import { encodeWebp, isSurelyLossy } from './webp/encode-webp.ts';

type Encode = (
  strip: Pixels,
  job: RenderJob,
  animation: Animation | undefined,
  hasFewColours?: boolean,
) => Uint8Array | Promise<Uint8Array>;

/** Our own encoders, for formats that need the pixels first, and the exact timing of an animation. */
const encoders: Readonly<Partial<Record<OutputFormat, Encode>>> = {
  gif: encodeGif,
  webp: encodeWebp,
};

/**
 * Encodes frames, one below the other, with the delays and loops of the animation.
 *
 * @param hasFewColours whether no frame of the original has more than 256 colours
 */
export async function encodeAnimation(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
  hasFewColours: boolean,
): Promise<Uint8Array> {
  // A single frame is a still without timing.
  if (animation.delaysMs.length === 1) return encodeStill(fromPixels(strip), job);
  const encode = encoders[job.format];
  if (encode === undefined) throw new Error(`Expected an animation but ${job.format} has none`);
  return await encode(strip, job, animation, hasFewColours);
}

/** Returns an encoded image unless it is too large (`MEDIA_TOO_LARGE`). */
export function checkResultSize(encoded: Uint8Array, { maxResultBytes }: RenderJob): Uint8Array {
  if (encoded.byteLength <= maxResultBytes) return encoded;
  throw tooLargeMedia(`${encoded.byteLength} bytes encoded, at most ${maxResultBytes}`);
}

/** Encodes an image, with white under transparent pixels if the format has no alpha; sharp decodes in the same pipeline. */
export async function encodeStill(image: Sharp, job: RenderJob): Promise<Uint8Array> {
  if (job.isPlaceholder === true) return encodePlaceholder(image);
  const { hasAlpha } = outputFormats[job.format];
  const opaque = hasAlpha ? image : image.flatten({ background: '#ffffff' });
  const srgb = opaque.toColourspace('srgb');
  const encode = isSurelyLossy(job) ? undefined : encoders[job.format];
  return encode === undefined
    ? srgb.toFormat(job.format, job.encoder).toBuffer()
    : encode(await toPixels(srgb), job, undefined);
}

async function encodePlaceholder(image: Sharp): Promise<Uint8Array> {
  const rgba = image.toColourspace('srgb').ensureAlpha();
  const { data, widthPx, heightPx } = await toPixels(rgba);
  return rgbaToThumbHash(widthPx, heightPx, data);
}
