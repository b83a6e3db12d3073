import type { Sharp } from 'sharp';
import type { OutputFormat } from '../../contract/image-formats.ts';
import type { Animation } from '../../formats/image-facts.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { encodeGif } from './gif/encode-gif.ts';
import { fromPixels, type Pixels, toPixels } from './pixels.ts';
import { encodeWebp } from './webp/encode-webp.ts';

type Encode = (
  strip: Pixels,
  job: RenderJob,
  animation: Animation | undefined,
) => Uint8Array | Promise<Uint8Array>;

/** Formats whose encoders want to see the pixels first, and the exact timing of an animation. */
const encoders: Readonly<Partial<Record<OutputFormat, Encode>>> = {
  gif: encodeGif,
  webp: encodeWebp,
};

/** Encodes frames, one below the other, with delays and loops as the animation has them. */
export async function encodeAnimation(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  // One frame is a still: there is nothing to time.
  if (animation.delaysMs.length === 1) return encodeStill(fromPixels(strip), job);
  const encode = encoders[job.format];
  if (encode === undefined) throw new Error(`Expected an animation but ${job.format} has none`);
  return await encode(strip, job, animation);
}

/** Encodes a picture, which is decoded and transformed with that. */
export async function encodeStill(image: Sharp, job: RenderJob): Promise<Uint8Array> {
  const srgb = image.toColourspace('srgb');
  const encode = encoders[job.format];
  return encode === undefined
    ? srgb.toFormat(job.format, job.encoder).toBuffer()
    : encode(await toPixels(srgb), job, undefined);
}
