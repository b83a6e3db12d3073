import { containerOf } from '../../formats/containers.ts';
import { isRgbProfile } from '../../formats/icc-profile.ts';
import type { Animation, Size } from '../../formats/image-header.ts';
import { replacesCanvas } from '../../formats/webp/webp-animation.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { scalesTogether } from '../../pipeline/render/render-cost.ts';
import { composeFrames } from './compose-frames.ts';
import { encodeAnimation } from './encode.ts';
import { scaleFrames } from './frame-scaling.ts';
import { decodeGif } from './gif/decode-gif.ts';
import {
  checkDecodedSize,
  decodeStrictly,
  type FrameRange,
  openOriginal,
  REDUCTION,
} from './open-original.ts';
import {
  autoOrient,
  fromPixels,
  MAX_SMALL_PIXELS,
  type Pixels,
  resize,
  toPixels,
} from './pixels.ts';

/** Bytes of decoded frames in memory; a longer animation is decoded in batches. */
const BATCH_BYTES = 64 * 1024 * 1024;

/**
 * Reduction of small frames by the decoder of WebP at `high` and `low`. It takes 0.6 of the time of decoding, and costs
 * 0.5 points of SSIMULACRA2 (bench/RESULTS.md).
 */
const SMALL_FRAME_REDUCTION = { minFactor: 1.5, leftToFilter: 1 };

/**
 * Renders every frame of an animation separately, then encodes them together. libvips would resize the frames as one
 * tall image, in which the edge of a frame gets colours of its neighbour.
 */
export async function renderAnimation(
  original: Uint8Array,
  job: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  const strip = await renderFrames(original, job, animation.delaysMs.length);
  return encodeAnimation(strip, job, animation);
}

/** Decodes in batches, and joins the rendered frames one below the other. */
async function renderFrames(original: Uint8Array, job: RenderJob, count: number): Promise<Pixels> {
  const { size, orientation } = job;
  const decodedSize = findDecodedSize(original, job);
  const { widthPx, heightPx } = decodedSize;
  const isFinalSize = widthPx === size.widthPx && heightPx === size.heightPx && orientation === 1;
  const isJoint = scalesTogether({ ...job, originalSize: decodedSize });
  const mostFrames = Math.max(1, Math.floor(BATCH_BYTES / (widthPx * heightPx * 4)));
  const batchFrames = Math.min(mostFrames, count);
  const batches = decodeFrames(original, job, { count, batchFrames, decodedSize });
  let strip: Buffer | undefined;
  let placedBytes = 0;
  let channels: Pixels['channels'] = 4;
  for await (const batch of batches) {
    channels = batch.channels;
    const renderedBytes = size.widthPx * size.heightPx * channels;
    strip ??= Buffer.allocUnsafeSlow(renderedBytes * count);
    const target = strip.subarray(placedBytes);
    if (isFinalSize) target.set(batch.data);
    else if (isJoint) target.set(await scaleFrames(batch, decodedSize, size));
    else await renderOneByOne(batch, decodedSize, job, target);
    placedBytes += renderedBytes * (batch.heightPx / heightPx);
  }
  return {
    data: strip ?? Buffer.alloc(0),
    widthPx: size.widthPx,
    heightPx: size.heightPx * count,
    channels,
  };
}

/** Returns the size of a decoded frame: the original's, unless a WebP's decoder reduces it. */
function findDecodedSize(original: Uint8Array, job: RenderJob): Size {
  const { originalSize, size, source, resize: kind, orientation, shrinksOnLoad } = job;
  const isReducible = source === 'webp' && kind === 'scale' && orientation === 1 && shrinksOnLoad;
  if (!isReducible) return originalSize;
  const isSmall = originalSize.widthPx * originalSize.heightPx <= MAX_SMALL_PIXELS;
  const { minFactor, leftToFilter } = isSmall ? SMALL_FRAME_REDUCTION : REDUCTION;
  const factor = originalSize.widthPx / size.widthPx;
  if (factor < minFactor || !replacesCanvas(original)) return originalSize;
  const widthPx = leftToFilter * size.widthPx;
  const exactHeight = (originalSize.heightPx * widthPx) / originalSize.widthPx;
  const heightPx = leftToFilter === 1 ? size.heightPx : Math.round(exactHeight);
  // Otherwise, the decoder rounds to another height: it keeps the proportions, and rounds halves to even numbers.
  return Math.abs(exactHeight - heightPx) < 0.5 ? { widthPx, heightPx } : originalSize;
}

interface Batches {
  readonly count: number;
  readonly batchFrames: number;
  readonly decodedSize: Size;
}

function decodeFrames(
  original: Uint8Array,
  job: RenderJob,
  batches: Batches,
): AsyncGenerator<Pixels, void> {
  const { batchFrames } = batches;
  if (job.source === 'gif') return decodeGif(original, job, batchFrames);
  const patches = containerOf(original)?.split?.(original);
  return patches === undefined
    ? decodeBatches(original, job, batches)
    : composeFrames(patches, job, batchFrames);
}

async function* decodeBatches(
  original: Uint8Array,
  job: RenderJob,
  { count, batchFrames, decodedSize }: Batches,
): AsyncGenerator<Pixels, void> {
  const profile = containerOf(original)?.readProfile?.(original);
  const ignoreIcc = profile !== undefined && !isRgbProfile(profile);
  for (let first = 0; first < count; first += batchFrames) {
    const frames = { first, count: Math.min(batchFrames, count - first) };
    yield await decode(original, job, frames, { decodedSize, ignoreIcc });
  }
}

function decode(
  original: Uint8Array,
  job: RenderJob,
  frames: FrameRange,
  { decodedSize, ignoreIcc }: { readonly decodedSize: Size; readonly ignoreIcc: boolean },
): Promise<Pixels> {
  const { widthPx, heightPx } = decodedSize;
  return decodeStrictly(original, job, frames, async (bytes, strictness) => {
    const image = openOriginal(bytes, job, frames, strictness, ignoreIcc);
    // Only the decoder reduces here: with a height too, sharp would scale all frames as one tall image.
    if (widthPx < job.originalSize.widthPx)
      image.resize({ width: widthPx, fastShrinkOnLoad: true });
    const pixels = await toPixels(image.toColourspace('srgb'));
    checkDecodedSize(pixels, { widthPx, heightPx: heightPx * frames.count });
    return pixels;
  });
}

async function renderOneByOne(
  { data, channels }: Pixels,
  { widthPx, heightPx }: Size,
  job: RenderJob,
  target: Uint8Array,
): Promise<void> {
  const frameBytes = widthPx * heightPx * channels;
  let placedBytes = 0;
  for (let start = 0; start < data.length; start += frameBytes) {
    const frame = { data: data.subarray(start, start + frameBytes), widthPx, heightPx, channels };
    const image = await autoOrient(fromPixels(frame), job.orientation);
    const rendered = await resize(image, job).raw().toBuffer();
    target.set(rendered, placedBytes);
    placedBytes += rendered.length;
  }
}
