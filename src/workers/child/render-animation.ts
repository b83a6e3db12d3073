import sharp, { type Sharp } from 'sharp';
import type { OutputFormat } from '../../contract/image-formats.ts';
import type { FramePatch } from '../../formats/frame-patch.ts';
import { restoreGifTiming } from '../../formats/gif/gif-timing.ts';
import type { Animation, Orientation } from '../../formats/image-facts.ts';
import { splitAnimation } from '../../formats/read-image-facts.ts';
import { restoreAnimation, SENTINEL_DELAY_MS } from '../../formats/webp/webp-animation.ts';
import { type RenderJob, scalesTogether } from '../../pipeline/render/render-job.ts';
import { composeFrames } from './compose-frames.ts';
import { type Pixels, scaleFrames } from './frame-scaling.ts';
import {
  checkDecodedSize,
  decodeStrictly,
  type FrameRange,
  openOriginal,
} from './open-original.ts';
import { resize } from './transform.ts';

/** Decoded frames held at once, in bytes; a longer animation is decoded in several goes. */
const BATCH_BYTES = 64 * 1024 * 1024;

/** What undoes an EXIF orientation (EXIF 2.32 §4.6.4): a mirror first, then a turn clockwise. */
const UPRIGHT: Readonly<Record<Orientation, { readonly mirror: boolean; readonly turn: number }>> =
  {
    1: { mirror: false, turn: 0 },
    2: { mirror: true, turn: 0 },
    3: { mirror: false, turn: 180 },
    4: { mirror: true, turn: 180 },
    5: { mirror: true, turn: 270 },
    6: { mirror: false, turn: 90 },
    7: { mirror: true, turn: 90 },
    8: { mirror: false, turn: 270 },
  };

/** How the true timing comes into an encoded file: a row for each format that can animate. */
const restoreTiming: Readonly<
  Partial<Record<OutputFormat, (encoded: Uint8Array, animation: Animation) => Uint8Array>>
> = { gif: restoreGifTiming, webp: restoreAnimation };

/**
 * Renders every frame of an animation by itself, then encodes them together.
 *
 * libvips would resize the frames as one tall image, in which the edge of a frame takes on the
 * colours of its neighbour; and its encoders round delays up and merge equal frames. So frames are
 * transformed apart, and delays and loops are written into the encoded file afterwards.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`; any other error is a bug of ours
 */
export async function renderAnimation(
  original: Uint8Array,
  job: RenderJob,
  animation: Animation,
): Promise<Uint8Array> {
  const patches = splitAnimation(original);
  const encoded =
    patches === undefined && staysAsItIs(job)
      ? await recode(original, job, animation)
      : await encode(await renderFrames(original, patches, job, animation), job, animation);
  // One frame is a still: there is nothing to time.
  if (animation.delaysMs.length === 1) return encoded;
  const restore = restoreTiming[job.format];
  if (restore === undefined) throw new Error(`Expected a way to time ${job.format} but found none`);
  return restore(encoded, animation);
}

/** Frames that stay as they are need not be cut apart. */
function recode(original: Uint8Array, job: RenderJob, animation: Animation): Promise<Uint8Array> {
  const frames = { first: 0, count: animation.delaysMs.length };
  return decodeStrictly(original, job, frames, (bytes, strictness) =>
    openOriginal(bytes, job, frames, strictness)
      .toColourspace('srgb')
      .toFormat(job.format, encoderOptions(job, animation))
      .toBuffer(),
  );
}

function encode(strip: Pixels, job: RenderJob, animation: Animation): Promise<Uint8Array> {
  return sharp(strip.data, {
    raw: {
      width: strip.widthPx,
      height: strip.heightPx,
      channels: strip.channels,
      pageHeight: job.size.heightPx,
    },
    limitInputPixels: false, // our own pixels: never more than were decoded
  })
    .toFormat(job.format, encoderOptions(job, animation))
    .toBuffer();
}

/** Timing in a form that no encoder changes; the true one is written in afterwards. */
function encoderOptions({ encoder }: RenderJob, { delaysMs, plays }: Animation): object {
  const loop = plays === 1 ? 1 : 0;
  return { ...encoder, delay: delaysMs.map(() => SENTINEL_DELAY_MS), loop };
}

function staysAsItIs({ resize, orientation }: RenderJob): boolean {
  return resize === 'none' && orientation === 1;
}

/** Decodes in batches, transforms each frame by itself, and puts the results one below the other. */
async function renderFrames(
  original: Uint8Array,
  patches: Iterable<FramePatch> | undefined,
  job: RenderJob,
  { delaysMs: { length: count } }: Animation,
): Promise<Pixels> {
  const { widthPx, heightPx } = job.originalSize;
  const mostFrames = Math.max(1, Math.floor(BATCH_BYTES / (widthPx * heightPx * 4)));
  const batchFrames = Math.min(mostFrames, count);
  const batches =
    patches === undefined
      ? decodeBatches(original, job, count, batchFrames)
      : composeFrames(patches, job, batchFrames);
  let strip: Buffer | undefined;
  let placedBytes = 0;
  let channels: Pixels['channels'] = 4;
  for await (const batch of batches) {
    channels = batch.channels;
    const renderedBytes = job.size.widthPx * job.size.heightPx * channels;
    strip ??= Buffer.allocUnsafeSlow(renderedBytes * count);
    const place = strip.subarray(placedBytes);
    if (staysAsItIs(job)) place.set(batch.data);
    else if (scalesTogether(job)) place.set(await scaleFrames(batch, job.originalSize, job.size));
    else await renderOneByOne(batch, job, place);
    placedBytes += renderedBytes * (batch.heightPx / heightPx);
  }
  return {
    data: strip ?? Buffer.alloc(0),
    widthPx: job.size.widthPx,
    heightPx: job.size.heightPx * count,
    channels,
  };
}

async function* decodeBatches(
  original: Uint8Array,
  job: RenderJob,
  count: number,
  batchFrames: number,
): AsyncGenerator<Pixels, void> {
  for (let first = 0; first < count; first += batchFrames) {
    yield await decode(original, job, { first, count: Math.min(batchFrames, count - first) });
  }
}

function decode(original: Uint8Array, job: RenderJob, frames: FrameRange): Promise<Pixels> {
  return decodeStrictly(original, job, frames, async (bytes, strictness) => {
    const image = openOriginal(bytes, job, frames, strictness).toColourspace('srgb');
    const pixels = await toPixels(image);
    const { widthPx, heightPx } = job.originalSize;
    checkDecodedSize(pixels, { widthPx, heightPx: heightPx * frames.count });
    return pixels;
  });
}

/** Renders frames into the place for them, one after the other. */
async function renderOneByOne(
  { data, channels }: Pixels,
  job: RenderJob,
  place: Uint8Array,
): Promise<void> {
  const { widthPx, heightPx } = job.originalSize;
  const frameBytes = widthPx * heightPx * channels;
  let placedBytes = 0;
  for (let start = 0; start < data.length; start += frameBytes) {
    const frame = data.subarray(start, start + frameBytes);
    const rendered = await renderFrame({ data: frame, widthPx, heightPx, channels }, job);
    place.set(rendered, placedBytes);
    placedBytes += rendered.length;
  }
}

async function renderFrame(frame: Pixels, job: RenderJob): Promise<Buffer> {
  const { mirror, turn } = UPRIGHT[job.orientation];
  const upright =
    job.orientation === 1 ? frame : await toPixels(fromPixels(frame).flop(mirror).rotate(turn));
  return resize(fromPixels(upright), job).raw().toBuffer();
}

function fromPixels({ data, widthPx, heightPx, channels }: Pixels): Sharp {
  return sharp(data, { raw: { width: widthPx, height: heightPx, channels } });
}

async function toPixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, widthPx: info.width, heightPx: info.height, channels: info.channels };
}
