import type { Sharp } from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';
import { type OutputFormat, outputFormats } from '../../contract/image-formats.ts';
import { tooLargeMedia } from '../../formats/byte-reader.ts';
import type { Animation } from '../../formats/image-header.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { encodeGif } from './gif/encode-gif.ts';
import { fromPixels, type Pixels, toPixels } from './pixels.ts';
import { encodeWebpAnimation, encodeWebpStill } from './webp/encode-webp.ts';

/** Encoder that needs decoded pixels, or the exact timing of an animation. */
interface Encoder {
  readonly encodeStill: (image: Sharp, job: RenderJob) => Promise<Uint8Array>;
  readonly encodeAnimation: (
    strip: Pixels,
    job: RenderJob,
    animation: Animation,
  ) => Uint8Array | Promise<Uint8Array>;
}

const encoders: Readonly<Partial<Record<OutputFormat, Encoder>>> = {
  gif: {
    encodeStill: async (image, job) => encodeAsGif(await toPixels(image), job, undefined),
    encodeAnimation: encodeAsGif,
  },
  webp: { encodeStill: encodeWebpStill, encodeAnimation: encodeWebpAnimation },
};

function encodeAsGif(
  strip: Pixels,
  { size, quality }: RenderJob,
  animation: Animation | undefined,
): Uint8Array {
  return encodeGif(strip, size, outputFormats.gif.qualities[quality], animation);
}

export async function encodeAnimation(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  // A single frame is a still without timing.
  if (animation.delaysMs.length === 1) return encodeStill(fromPixels(strip), job);
  const encoder = encoders[job.format];
  if (encoder === undefined) throw new Error(`Expected an animation but ${job.format} has none`);
  return await encoder.encodeAnimation(strip, job, animation);
}

export function checkResultSize(encoded: Uint8Array, { maxResultBytes }: RenderJob): Uint8Array {
  if (encoded.byteLength <= maxResultBytes) return encoded;
  throw tooLargeMedia(`${encoded.byteLength} bytes encoded, at most ${maxResultBytes}`);
}

/** Encodes an image, on white if the format lacks alpha; sharp decodes in the same pipeline. */
export async function encodeStill(image: Sharp, job: RenderJob): Promise<Uint8Array> {
  if (job.isPlaceholder === true) return encodePlaceholder(image);
  const { format, quality } = job;
  const { hasAlpha, qualities } = outputFormats[format];
  const opaque = hasAlpha ? image : image.flatten({ background: '#ffffff' });
  const srgb = opaque.toColourspace('srgb');
  const encoder = encoders[format];
  return encoder === undefined
    ? srgb.toFormat(format, qualities[quality]).toBuffer()
    : encoder.encodeStill(srgb, job);
}

async function encodePlaceholder(image: Sharp): Promise<Uint8Array> {
  const rgba = image.toColourspace('srgb').ensureAlpha();
  const { data, widthPx, heightPx } = await toPixels(rgba);
  return rgbaToThumbHash(widthPx, heightPx, data);
}
