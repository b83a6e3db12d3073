import { containerOf } from '../../formats/containers.ts';
import { isRgbProfile } from '../../formats/icc-profile.ts';
import type { Animation } from '../../formats/image-header.ts';
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
} from './open-original.ts';
import { fromPixels, type Pixels, resize, toPixels, upright } from './pixels.ts';

/** Bytes of decoded frames in memory; a longer animation is decoded in batches. */
const BATCH_BYTES = 64 * 1024 * 1024;

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
  const { originalSize } = job;
  const { widthPx, heightPx } = originalSize;
  const isUntransformed = job.resize === 'none' && job.orientation === 1;
  const isJoint = scalesTogether(job);
  const mostFrames = Math.max(1, Math.floor(BATCH_BYTES / (widthPx * heightPx * 4)));
  const batchFrames = Math.min(mostFrames, count);
  const batches = decodeFrames(original, job, { count, batchFrames });
  let strip: Buffer | undefined;
  let placedBytes = 0;
  let channels: Pixels['channels'] = 4;
  for await (const batch of batches) {
    channels = batch.channels;
    const renderedBytes = job.size.widthPx * job.size.heightPx * channels;
    strip ??= Buffer.allocUnsafeSlow(renderedBytes * count);
    const target = strip.subarray(placedBytes);
    if (isUntransformed) target.set(batch.data);
    else if (isJoint) target.set(await scaleFrames(batch, originalSize, job.size));
    else await renderOneByOne(batch, job, target);
    placedBytes += renderedBytes * (batch.heightPx / heightPx);
  }
  return {
    data: strip ?? Buffer.alloc(0),
    widthPx: job.size.widthPx,
    heightPx: job.size.heightPx * count,
    channels,
  };
}

interface Batches {
  readonly count: number;
  readonly batchFrames: number;
}

function decodeFrames(
  original: Uint8Array,
  job: RenderJob,
  { count, batchFrames }: Batches,
): AsyncGenerator<Pixels, void> {
  if (job.source === 'gif') return decodeGif(original, job, batchFrames);
  const patches = containerOf(original)?.split?.(original);
  return patches === undefined
    ? decodeBatches(original, job, { count, batchFrames })
    : composeFrames(patches, job, batchFrames);
}

async function* decodeBatches(
  original: Uint8Array,
  job: RenderJob,
  { count, batchFrames }: Batches,
): AsyncGenerator<Pixels, void> {
  const profile = containerOf(original)?.readProfile?.(original);
  const ignoreIcc = profile !== undefined && !isRgbProfile(profile);
  for (let first = 0; first < count; first += batchFrames) {
    const frames = { first, count: Math.min(batchFrames, count - first) };
    yield await decode(original, job, frames, ignoreIcc);
  }
}

function decode(
  original: Uint8Array,
  job: RenderJob,
  frames: FrameRange,
  ignoreIcc: boolean,
): Promise<Pixels> {
  return decodeStrictly(original, job, frames, async (bytes, strictness) => {
    const image = openOriginal(bytes, job, frames, strictness, ignoreIcc);
    const pixels = await toPixels(image.toColourspace('srgb'));
    const { widthPx, heightPx } = job.originalSize;
    checkDecodedSize(pixels, { widthPx, heightPx: heightPx * frames.count });
    return pixels;
  });
}

async function renderOneByOne(
  { data, channels }: Pixels,
  job: RenderJob,
  target: Uint8Array,
): Promise<void> {
  const { widthPx, heightPx } = job.originalSize;
  const frameBytes = widthPx * heightPx * channels;
  let placedBytes = 0;
  for (let start = 0; start < data.length; start += frameBytes) {
    const frame = { data: data.subarray(start, start + frameBytes), widthPx, heightPx, channels };
    const image = await upright(fromPixels(frame), job.orientation);
    const rendered = await resize(image, job).raw().toBuffer();
    target.set(rendered, placedBytes);
    placedBytes += rendered.length;
  }
}
