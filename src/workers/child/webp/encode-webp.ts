import sharp from 'sharp';
import { type EncoderSettings, outputFormats } from '../../../contract/image-formats.ts';
import { DEFAULT_WEBP_EFFORT } from '../../../contract/pipeline-release.ts';
import type { Animation, Size } from '../../../formats/image-facts.ts';
import { restoreAnimation, SENTINEL_DELAY_MS } from '../../../formats/webp/webp-animation.ts';
import type { RenderJob } from '../../../pipeline/render/render-job.ts';
import type { Pixels } from '../pixels.ts';
import { estimateLossless } from './lossless-estimate.ts';

/** Small results, by their longer edge: here chroma at half the resolution is seen. */
const SMALL_PX = 64;
const TINY_PX = 32;

/** How much larger the lossless form of a small drawing may be, at `high`: it is worth it (docs/performance.md). */
const WORTH = { tiny: 2.5, small: 1.25, any: 1 };

/** Estimated at more than so many times the lossy bytes, the lossless form is not tried: a photograph. */
const WORTH_TRYING = 2;

/** So few colours are a drawing or a pattern, whatever the estimate says. */
const FEW_COLOURS = 32;

/** Frames of an animation whose two forms tell of the whole. */
const SAMPLE_FRAMES = 2;

/** Of the sample, lossless bytes by lossy ones: up to the first, the lossless form is taken; from the second, the lossy. */
const CLEARLY_SMALLER = 0.8;
const CLEARLY_LARGER = 2;

/** Beyond, in pixels of all frames, an animation is encoded but once. */
const MAX_BOTH_PIXELS = 4_000_000;

/** As `lossless`, but what is below transparent pixels is not kept: it is not to be seen. */
function losslessForm({ encoder: { effort = DEFAULT_WEBP_EFFORT } }: RenderJob): EncoderSettings {
  return { ...outputFormats.webp.qualities.lossless, exact: false, effort };
}

/**
 * Encodes a WebP. Where a lossy quality is asked for and the picture is a drawing, its lossless form may be the
 * smaller one and is never the worse: of a still both are made, of an animation what a sample of frames decides.
 *
 * @param strip frames, one below the other
 * @param animation `undefined`: there is one frame, a still
 */
export async function encodeWebp(
  strip: Pixels,
  job: RenderJob,
  animation: Animation | undefined,
): Promise<Uint8Array> {
  const { size, encoder } = job;
  const encode = (settings: EncoderSettings): Promise<Uint8Array> =>
    encodeAs(strip, size, settings, animation);
  if (encoder.lossless === true) return encode(encoder);
  return animation === undefined
    ? encodeStill(strip, job, encode)
    : encodeFrames(strip, job, animation, encode);
}

type Encode = (settings: EncoderSettings) => Promise<Uint8Array>;

async function encodeStill(frame: Pixels, job: RenderJob, encode: Encode): Promise<Uint8Array> {
  const lossy = await encode(job.encoder);
  if (!isWorthTrying(frame, job.size, lossy.length)) return lossy;
  const lossless = await encode(losslessForm(job));
  return lossless.length <= lossy.length * worthOf(job) ? lossless : lossy;
}

async function encodeFrames(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
  encode: Encode,
): Promise<Uint8Array> {
  const ratio = await compareSample(strip, job, animation);
  const isLarge = strip.widthPx * strip.heightPx > MAX_BOTH_PIXELS;
  if (ratio >= CLEARLY_LARGER || (isLarge && ratio > 1)) return encode(job.encoder);
  const lossless = await encode(losslessForm(job));
  if (ratio <= CLEARLY_SMALLER || isLarge) return lossless;
  const lossy = await encode(job.encoder);
  return lossless.length <= lossy.length * worthOf(job) ? lossless : lossy;
}

function isWorthTrying(frame: Pixels, size: Size, lossyBytes: number): boolean {
  const { bytes, colours } = estimateLossless(frame, size);
  return colours <= FEW_COLOURS || bytes < WORTH_TRYING * lossyBytes;
}

function worthOf({ size, encoder }: RenderJob): number {
  if (encoder.quality !== outputFormats.webp.qualities.high.quality) return WORTH.any;
  const edgePx = Math.max(size.widthPx, size.heightPx);
  return edgePx <= TINY_PX ? WORTH.tiny : edgePx <= SMALL_PX ? WORTH.small : WORTH.any;
}

/**
 * Lossless bytes by lossy ones of two frames from the middle, where an animation has begun to move; no finite
 * number where an estimate tells that it is not worth trying.
 */
async function compareSample(
  strip: Pixels,
  job: RenderJob,
  { delaysMs }: Animation,
): Promise<number> {
  const { size, encoder } = job;
  const first = Math.max(0, Math.floor(delaysMs.length / 2) - 1);
  const sample = takeFrames(strip, size, first, SAMPLE_FRAMES);
  const animation = { delaysMs: delaysMs.slice(first, first + SAMPLE_FRAMES), plays: 0 };
  const lossy = await encodeAs(sample, size, encoder, animation);
  const frame = takeFrames(strip, size, first, 1);
  if (!isWorthTrying(frame, size, lossy.length)) return Number.POSITIVE_INFINITY;
  const lossless = await encodeAs(sample, size, losslessForm(job), animation);
  return lossless.length / lossy.length;
}

function takeFrames(
  { data, widthPx, channels }: Pixels,
  { heightPx }: Size,
  first: number,
  count: number,
): Pixels {
  const frameBytes = widthPx * heightPx * channels;
  const part = data.subarray(first * frameBytes, (first + count) * frameBytes);
  return { data: part, widthPx, heightPx: part.length / (widthPx * channels), channels };
}

/**
 * libvips' encoder rounds delays up, and merges equal frames: it is given a timing that it does not change,
 * and the true one is written into the file afterwards.
 */
async function encodeAs(
  { data, widthPx, heightPx, channels }: Pixels,
  size: Size,
  settings: EncoderSettings,
  animation: Animation | undefined,
): Promise<Uint8Array> {
  const isAnimated = animation !== undefined;
  const timing = isAnimated && {
    delay: animation.delaysMs.map(() => SENTINEL_DELAY_MS),
    loop: animation.plays === 1 ? 1 : 0,
  };
  const encoded = await sharp(data, {
    raw: {
      width: widthPx,
      height: heightPx,
      channels,
      ...(isAnimated && { pageHeight: size.heightPx }),
    },
    limitInputPixels: false, // our own pixels: never more than were decoded
  })
    .webp({ ...settings, ...timing })
    .toBuffer();
  return isAnimated ? restoreAnimation(encoded, animation) : encoded;
}
