import type { FramePatch, FramePlacement, Size } from '../../formats/image-header.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { decodeStrictly, openStill } from './open-original.ts';
import { type Pixels, toPixels } from './pixels.ts';

const CHANNELS = 4;
const OPAQUE = 255;

/** Decodes and composes the frames of an animation; yields `batchFrames` at a time, one below the other. */
export function composeFrames(
  patches: Iterable<FramePatch>,
  job: RenderJob,
  batchFrames: number,
): AsyncGenerator<Pixels, void> {
  const canvas = new FrameCanvas(job.originalSize);
  async function* draw(): AsyncGenerator<void> {
    for (const patch of patches) {
      canvas.draw(patch, await decodePatch(patch, job));
      yield;
    }
  }
  return joinFrames(canvas, draw(), { channels: CHANNELS, batchFrames });
}

/** Yields copies of the canvas after each frame. @param channels 3 if all pixels of all frames are opaque */
export async function* joinFrames(
  canvas: FrameCanvas,
  drawn: AsyncIterable<void> | Iterable<void>,
  { channels, batchFrames }: { readonly channels: 3 | 4; readonly batchFrames: number },
): AsyncGenerator<Pixels, void> {
  const { widthPx, heightPx } = canvas.size;
  const frameBytes = widthPx * heightPx * channels;
  let batch: Buffer | undefined;
  let count = 0;
  const finishBatch = (data: Buffer): Pixels => {
    const composed = { data, widthPx, heightPx: heightPx * count, channels };
    batch = undefined;
    count = 0;
    return composed;
  };
  for await (const _ of drawn) {
    batch ??= Buffer.allocUnsafeSlow(frameBytes * batchFrames);
    if (channels === CHANNELS) batch.set(canvas.pixels, frameBytes * count);
    else copyOpaque(canvas.pixels, batch.subarray(frameBytes * count));
    count += 1;
    if (count === batchFrames) yield finishBatch(batch);
  }
  if (batch !== undefined) yield finishBatch(batch.subarray(0, frameBytes * count));
}

function copyOpaque(pixels: Uint8Array, target: Uint8Array): void {
  for (let from = 0, to = 0; from < pixels.length; from += CHANNELS, to += 3) {
    target[to] = pixels[from];
    target[to + 1] = pixels[from + 1];
    target[to + 2] = pixels[from + 2];
  }
}

/** Decodes a frame's image to sRGB with alpha, 8 bits. */
function decodePatch(patch: FramePatch, job: RenderJob): Promise<Uint8Array> {
  return decodeStrictly(patch.file, job, undefined, async (bytes, strictness) => {
    const image = await openStill(bytes, job, { size: patch, orientation: 1 }, strictness);
    const { data } = await toPixels(image.toColourspace('srgb').ensureAlpha());
    return data;
  });
}

/**
 * Canvas of the frames of a GIF or APNG (GIF89a §23, PNG 3rd edition §4.9, §13.16): straight alpha, 8 bits. Transparent
 * pixels keep the colours of the last frame that painted them.
 */
export class FrameCanvas {
  readonly size: Size;
  /** Four samples per pixel; copy them before drawing the next frame. */
  readonly pixels: Uint8Array<ArrayBuffer>;
  #last: FramePlacement | undefined;
  #kept: Uint8Array | undefined;

  constructor(size: Size) {
    this.size = size;
    this.pixels = new Uint8Array(size.widthPx * size.heightPx * CHANNELS);
  }

  /** Draws a frame that lies within the canvas, after disposing of the previous one. */
  draw(placement: FramePlacement, patch: Uint8Array): void {
    this.begin(placement);
    const rowBytes = placement.widthPx * CHANNELS;
    for (const [row, below] of this.#rows(placement)) {
      const over = patch.subarray(row * rowBytes, (row + 1) * rowBytes);
      if (placement.blend === 'source') below.set(over);
      else blendOver(below, over);
    }
  }

  /** Disposes of the previous frame; the caller then draws the next one into `pixels`. */
  begin(placement: FramePlacement): void {
    this.#disposeLast();
    // The canvas begins as transparent black, so "previous" of the first frame equals "background", as specified.
    if (placement.dispose === 'previous') this.#kept = this.pixels.slice();
    this.#last = placement;
  }

  #disposeLast(): void {
    if (this.#last?.dispose === 'background') {
      for (const [, pixels] of this.#rows(this.#last)) pixels.fill(0);
    }
    if (this.#kept !== undefined) this.pixels.set(this.#kept);
    this.#kept = undefined;
  }

  *#rows(region: FramePlacement): Generator<[row: number, pixels: Uint8Array], void> {
    const { leftPx, topPx, widthPx, heightPx } = region;
    for (let row = 0; row < heightPx; row += 1) {
      const start = ((topPx + row) * this.size.widthPx + leftPx) * CHANNELS;
      yield [row, this.pixels.subarray(start, start + widthPx * CHANNELS)];
    }
  }
}

/** Composites by the operation "over" of straight alpha. */
function blendOver(below: Uint8Array, over: Uint8Array): void {
  for (let at = 0; at < below.length; at += CHANNELS) {
    const alpha = over[at + 3];
    if (alpha === 0) continue;
    const alphaBelow = below[at + 3];
    if (alpha === OPAQUE || alphaBelow === 0) {
      for (let sample = at; sample < at + CHANNELS; sample += 1) below[sample] = over[sample];
      continue;
    }
    // Contributions of both, in units of 1 / 255².
    const weight = alpha * OPAQUE;
    const weightBelow = alphaBelow * (OPAQUE - alpha);
    const sum = weight + weightBelow;
    for (let sample = at; sample < at + 3; sample += 1) {
      const mixed = over[sample] * weight + below[sample] * weightBelow;
      below[sample] = Math.round(mixed / sum);
    }
    below[at + 3] = Math.round(sum / OPAQUE);
  }
}
