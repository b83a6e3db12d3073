import type { Size } from '../../formats/image-header.ts';
import { fromPixels, type Pixels } from './pixels.ts';

const MAX_SAMPLE = 255;
const SAMPLES = 256;

/** `VIPS_MAX_COORD`. */
const MAX_EDGE_PX = 10_000_000;

/** Bytes of frames that are scaled at a time: few enough for the caches, enough to be worth two calls. */
const GROUP_BYTES = 4 * 1024 * 1024;

/**
 * Scales many frames with two calls of libvips, since a call costs more than an emoji's frame (24 frames from 128 to 64
 * pixels: 31 ms one by one, 5 together).
 *
 * A filter in one direction does not mix adjacent pixels of the other: frames side by side are scaled in height, then
 * one below the other in width. With alpha, which sharp would multiply again, they are transposed and scaled in height:
 * where a pixel lies halfway between two of the filter's 64 positions, libvips may then choose the other one.
 *
 * @param strip frames of size `from`, one below the other
 * @param to no edge is longer than that of `from`
 */
export async function scaleFrames(strip: Pixels, from: Size, to: Size): Promise<Uint8Array> {
  const { channels, data, heightPx } = strip;
  const count = heightPx / from.heightPx;
  const frameBytes = from.widthPx * from.heightPx * channels;
  const scaledBytes = to.widthPx * to.heightPx * channels;
  const scaled = Buffer.allocUnsafeSlow(scaledBytes * count);
  const longestPx = Math.max(from.widthPx, from.heightPx);
  const mostFrames = Math.min(
    Math.floor(GROUP_BYTES / frameBytes),
    Math.floor(MAX_EDGE_PX / (longestPx * channels)),
  );
  const groupFrames = Math.max(1, mostFrames);
  for (let first = 0; first < count; first += groupFrames) {
    const group = data.subarray(first * frameBytes, (first + groupFrames) * frameBytes);
    scaled.set(await scaleGroup(group, channels, from, to), first * scaledBytes);
  }
  return scaled;
}

async function scaleGroup(
  frames: Uint8Array,
  channels: Pixels['channels'],
  from: Size,
  to: Size,
): Promise<Uint8Array> {
  const count = frames.length / (from.widthPx * from.heightPx * channels);
  const hasAlpha = channels === 2 || channels === 4;
  const side = placeSideBySide(frames, count, from.widthPx * channels);
  if (hasAlpha) weighByAlpha(side, channels, premultiplied);
  const lower = await scaleHeight(side, from.heightPx, to.heightPx);
  if (!hasAlpha) {
    const data = placeBelow(lower, count, from.widthPx * channels);
    const heightPx = count * to.heightPx;
    return scale({ data, widthPx: from.widthPx, heightPx, channels }, { ...to, heightPx });
  }
  // [row][frame][column] to [column][frame][row]
  const transposed = swapAxes(lower, [to.heightPx, count, from.widthPx], channels);
  const narrower = await scaleHeight(transposed, from.widthPx, to.widthPx);
  // [column][frame and row] to [frame and row][column]
  const scaled = swapAxes(narrower, [to.widthPx, 1, count * to.heightPx], channels);
  if (hasAlpha) weighByAlpha(scaled, channels, unpremultiplied);
  return scaled;
}

function placeSideBySide(frames: Uint8Array, count: number, rowBytes: number): Uint8Array {
  const side = new Uint8Array(frames.length);
  const rows = frames.length / rowBytes / count;
  for (let frame = 0; frame < count; frame += 1) {
    for (let row = 0; row < rows; row += 1) {
      const at = (frame * rows + row) * rowBytes;
      side.set(frames.subarray(at, at + rowBytes), (row * count + frame) * rowBytes);
    }
  }
  return side;
}

/** Undoes `placeSideBySide`. */
function placeBelow(side: Uint8Array, count: number, rowBytes: number): Uint8Array {
  const strip = new Uint8Array(side.length);
  const rows = side.length / rowBytes / count;
  for (let frame = 0; frame < count; frame += 1) {
    for (let row = 0; row < rows; row += 1) {
      const at = (row * count + frame) * rowBytes;
      strip.set(side.subarray(at, at + rowBytes), (frame * rows + row) * rowBytes);
    }
  }
  return strip;
}

/** Scales rows of samples in height, regardless of the number of channels. */
async function scaleHeight(data: Uint8Array, rows: number, toRows: number): Promise<Uint8Array> {
  const rowBytes = data.length / rows;
  // libvips averages rows of three channels twice as fast as rows of one.
  const channels = rowBytes % 3 === 0 ? 3 : 1;
  const widthPx = rowBytes / channels;
  return await scale({ data, widthPx, heightPx: rows, channels }, { widthPx, heightPx: toRows });
}

async function scale(pixels: Pixels, { widthPx, heightPx }: Size): Promise<Uint8Array> {
  if (pixels.widthPx === widthPx && pixels.heightPx === heightPx) return pixels.data;
  return await fromPixels(pixels)
    .resize({ width: widthPx, height: heightPx, fit: 'fill' })
    .toColourspace(pixels.channels === 1 ? 'b-w' : 'srgb')
    .raw()
    .toBuffer();
}

/** Swaps the outer axis of pixels with the inner one. */
function swapAxes(
  source: Uint8Array,
  axes: readonly [outer: number, middle: number, inner: number],
  channels: number,
): Uint8Array {
  const target = new Uint8Array(source.length);
  if (channels === 4) {
    moveItems(asWords(source), asWords(target), axes, 1);
  } else {
    moveItems(source, target, axes, channels);
  }
  return target;
}

function asWords(bytes: Uint8Array): Uint32Array {
  const size = Uint32Array.BYTES_PER_ELEMENT;
  const { buffer, byteOffset } = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(buffer, byteOffset, bytes.byteLength / size);
}

function moveItems(
  source: Uint8Array | Uint32Array,
  target: Uint8Array | Uint32Array,
  [outer, middle, inner]: readonly [outer: number, middle: number, inner: number],
  items: number,
): void {
  const step = middle * outer * items;
  let from = 0;
  for (let one = 0; one < outer; one += 1) {
    for (let two = 0; two < middle; two += 1) {
      let to = (two * outer + one) * items;
      for (let three = 0; three < inner; three += 1) {
        for (let item = 0; item < items; item += 1) target[to + item] = source[from + item];
        from += items;
        to += step;
      }
    }
  }
}

/** Product of sample and alpha, as libvips multiplies: in single precision, truncated. */
const premultiplied = tabulate((sample, alpha) => sample * Math.fround(alpha / MAX_SAMPLE));

const unpremultiplied = tabulate((sample, alpha) =>
  alpha === 0 ? 0 : Math.min(MAX_SAMPLE, sample * Math.fround(MAX_SAMPLE / alpha)),
);

function tabulate(compute: (sample: number, alpha: number) => number): Uint8Array {
  return Uint8Array.from({ length: SAMPLES * SAMPLES }, (_, index) =>
    Math.fround(compute(index % SAMPLES, Math.floor(index / SAMPLES))),
  );
}

/** Maps all samples except alpha through a table by sample and alpha. */
function weighByAlpha(pixels: Uint8Array, channels: number, table: Uint8Array): void {
  const last = channels - 1;
  for (let at = 0; at < pixels.length; at += channels) {
    const alpha = pixels[at + last];
    if (alpha === MAX_SAMPLE) continue;
    for (let channel = 0; channel < last; channel += 1) {
      pixels[at + channel] = table[alpha * SAMPLES + pixels[at + channel]];
    }
  }
}
