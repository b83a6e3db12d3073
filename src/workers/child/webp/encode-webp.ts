import type { Sharp, WebpOptions } from 'sharp';
import { largeStillOf, outputFormats } from '../../../contract/image-formats.ts';
import type { Animation } from '../../../formats/image-header.ts';
import { restoreAnimation, SENTINEL_DELAY_MS } from '../../../formats/webp/webp-animation.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { fromPixels, type Pixels, toPixels } from '../pixels.ts';
import { hasFewColours, hasManyColours } from './few-colours.ts';

const { qualities } = outputFormats.webp;

/**
 * Effort of lossless animations, and of stills at `high` and `low`: 0.3 of the CPU time of effort 4, for 1.3 % more
 * bytes of stills and 0.4 % of animations (bench/RESULTS.md).
 */
const FAST_EFFORT = 1;

/**
 * Effort 0 takes a third of the time. If its bytes exceed the lossy ones by this factor, those of `FAST_EFFORT` also do:
 * for frames with many colours and more than a byte per pixel, effort 0 writes at most 1.32 times the bytes of
 * `FAST_EFFORT` (bench/RESULTS.md); for drawings and gradients, many times.
 */
const ROUGH_FACTOR = 1.5;

/** Lossless bytes per pixel of a small photograph; determines the number of frames in the first trial. */
const LOSSLESS_BYTES_PER_PIXEL = 1.8;

/** Factor for the estimated number of frames whose lossless encoding is larger than the lossy animation. */
const SAFETY_FACTOR = 1.2;

/** Encodes a still. At `high` and `low`, a picture of few colours is lossless, unless its original is lossy. */
export async function encodeWebpStill(image: Sharp, job: RenderJob): Promise<Uint8Array> {
  const { quality, size, isLossy } = job;
  if (quality === 'lossless')
    return image.webp(withLargeStillSettings(job, qualities.lossless)).toBuffer();
  if (isLossy === true) return image.webp(lossySettings(job)).toBuffer();
  const pixels = await toPixels(image);
  // Without `exact`, the invisible colours below transparent pixels are dropped.
  const settings = hasFewColours(pixels, size)
    ? withLargeStillSettings(job, { ...fastLossless(job), exact: false })
    : lossySettings(job);
  return fromPixels(pixels).webp(settings).toBuffer();
}

/**
 * Encodes an animation of two or more frames. At `high` and `low`, it is never larger than `lossless` (contract §3).
 *
 * @param strip frames, one below the other
 */
export async function encodeWebpAnimation(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  const { size, quality } = job;
  const frames = animation.delaysMs.length;
  const encode = (settings: WebpOptions, count = frames): Promise<Uint8Array> =>
    encodeFrames(strip, job, settings, {
      ...animation,
      delaysMs: animation.delaysMs.slice(0, count),
    });
  if (quality === 'lossless' || hasFewColours(strip, size)) return encode(fastLossless(job));
  const lossy = await encode(lossySettings(job));
  const pixels = size.widthPx * size.heightPx;
  let frameBytes = LOSSLESS_BYTES_PER_PIXEL * pixels;
  // The first frames suffice, since their encoding does not depend on later ones.
  const framesFor = (bytes: number): number =>
    Math.min(frames, Math.max(2, Math.ceil((SAFETY_FACTOR * bytes) / frameBytes)));
  if (hasManyColours(strip, size)) {
    const count = framesFor(ROUGH_FACTOR * lossy.length);
    const rough = await encode({ ...fastLossless(job), effort: 0 }, count);
    if (rough.length > Math.max(ROUGH_FACTOR * lossy.length, count * pixels)) return lossy;
    frameBytes = rough.length / count;
  }
  for (;;) {
    const count = framesFor(lossy.length);
    const lossless = await encode(fastLossless(job), count);
    if (lossless.length > lossy.length) return lossy;
    if (count === frames) return lossless;
    frameBytes = lossless.length / count;
  }
}

function lossySettings({ quality, webpEffort }: RenderJob): WebpOptions {
  return { ...qualities[quality], effort: webpEffort };
}

function fastLossless({ webpEffort }: RenderJob): WebpOptions {
  return { ...qualities.lossless, effort: Math.min(webpEffort, FAST_EFFORT) };
}

function withLargeStillSettings(
  { size, webpEffort: effort }: RenderJob,
  settings: WebpOptions,
): WebpOptions {
  const large = largeStillOf('webp', size.widthPx * size.heightPx);
  return { effort, ...settings, ...large?.settings };
}

/** Encodes with an artificial timing, then writes the true one: libvips rounds delays up and merges equal frames. */
async function encodeFrames(
  strip: Pixels,
  { size }: RenderJob,
  settings: WebpOptions,
  animation: Animation,
): Promise<Uint8Array> {
  const heightPx = size.heightPx * animation.delaysMs.length;
  const data = strip.data.subarray(0, strip.widthPx * heightPx * strip.channels);
  const delay = animation.delaysMs.map(() => SENTINEL_DELAY_MS);
  const loop = animation.plays === 1 ? 1 : 0;
  const encoded = await fromPixels({ ...strip, data, heightPx }, size)
    .webp({ ...settings, delay, loop })
    .toBuffer();
  return restoreAnimation(encoded, animation);
}
