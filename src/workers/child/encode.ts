import sharp, { type Sharp } from 'sharp';
import type { OutputFormat } from '../../contract/image-formats.ts';
import type { Animation } from '../../formats/image-facts.ts';
import { restoreAnimation, SENTINEL_DELAY_MS } from '../../formats/webp/webp-animation.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { encodeGif, gifSettingsOf } from './gif/encode-gif.ts';
import { fromPixels, type Pixels, toPixels } from './pixels.ts';

type Encode = (
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
) => Uint8Array | Promise<Uint8Array>;

/** How frames become a file with their exact timing: a row for each format that can animate. */
const animationEncoders: Readonly<Partial<Record<OutputFormat, Encode>>> = {
  gif: (strip, { size, encoder }, animation) =>
    encodeGif(strip, size, gifSettingsOf(encoder), animation),
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
  const encode = animationEncoders[job.format];
  if (encode === undefined) throw new Error(`Expected an animation but ${job.format} has none`);
  return await encode(strip, job, animation);
}

/** Encodes a picture: decodes and transforms it with that, where it is not made of pixels in memory. */
export async function encodeStill(image: Sharp, job: RenderJob): Promise<Uint8Array> {
  const srgb = image.toColourspace('srgb');
  if (job.format === 'gif') {
    return encodeGif(await toPixels(srgb), job.size, gifSettingsOf(job.encoder), undefined);
  }
  return srgb.toFormat(job.format, job.encoder).toBuffer();
}

/**
 * libvips' encoder rounds delays up, and merges equal frames: it is given a timing that it does not change,
 * and the true one is written into the file afterwards.
 */
async function encodeWebp(
  strip: Pixels,
  { size, encoder }: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  const { widthPx, heightPx, channels } = strip;
  const encoded = await sharp(strip.data, {
    raw: { width: widthPx, height: heightPx, channels, pageHeight: size.heightPx },
    limitInputPixels: false, // our own pixels: never more than were decoded
  })
    .webp({
      ...encoder,
      delay: animation.delaysMs.map(() => SENTINEL_DELAY_MS),
      loop: animation.plays === 1 ? 1 : 0,
    })
    .toBuffer();
  return restoreAnimation(encoded, animation);
}
