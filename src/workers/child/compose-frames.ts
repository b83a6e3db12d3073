import type { FramePatch, FramePlacement, Size } from '../../formats/image-facts.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { decodeStrictly, openStill } from './open-original.ts';
import { type Pixels, toPixels } from './pixels.ts';

const CHANNELS = 4;
const OPAQUE = 255;

/**
 * Decodes the frames of an animation one by one, and composes them as the container specifies.
 *
 * @param batchFrames number of whole frames that are yielded at a time, one below the other
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`; any other error is a bug of ours
 */
export async function* composeFrames(
  patches: AsyncIterable<FramePatch>,
  job: RenderJob,
  batchFrames: number,
): AsyncGenerator<Pixels, void> {
  const { widthPx, heightPx } = job.originalSize;
  const canvas = new FrameCanvas(job.originalSize);
  const frameBytes = canvas.pixels.length;
  let batch: Buffer | undefined;
  let count = 0;
  const finishBatch = (data: Buffer): Pixels => {
    const composed = { data, widthPx, heightPx: heightPx * count, channels: CHANNELS } as const;
    batch = undefined;
    count = 0;
    return composed;
  };
  for await (const patch of patches) {
    canvas.draw(patch, await decodePatch(patch, job));
    batch ??= Buffer.allocUnsafeSlow(frameBytes * batchFrames);
    batch.set(canvas.pixels, frameBytes * count);
    count += 1;
    if (count === batchFrames) yield finishBatch(batch);
  }
  if (batch !== undefined) yield finishBatch(batch.subarray(0, frameBytes * count));
}

/** Decodes the image of a frame: sRGB with alpha, 8 bits. */
function decodePatch(patch: FramePatch, job: RenderJob): Promise<Uint8Array> {
  return decodeStrictly(patch.file, job, undefined, async (bytes, strictness) => {
    const image = await openStill(bytes, job, { size: patch, orientation: 1 }, strictness);
    const { data } = await toPixels(image.toColourspace('srgb').ensureAlpha());
    return data;
  });
}

/**
 * The canvas on which the frames of an animation are composed (PNG 3rd edition §4.9, §13.16): straight alpha, 8 bits,
 * rounded to the nearest. Pixels with an alpha of 0 keep the colours of the last frame that painted them.
 */
class FrameCanvas {
  /** Four samples per pixel; must be copied before the next frame is drawn. */
  readonly pixels: Uint8Array;
  readonly #widthPx: number;
  #last: FramePlacement | undefined;
  /** The canvas before the last frame, if that frame restores it. */
  #kept: Uint8Array | undefined;

  constructor({ widthPx, heightPx }: Size) {
    this.#widthPx = widthPx;
    this.pixels = new Uint8Array(widthPx * heightPx * CHANNELS);
  }

  /**
   * Draws the next frame, after disposing of the previous one.
   *
   * @param patch pixels of the frame, four samples each; its region lies within the canvas
   */
  draw(placement: FramePlacement, patch: Uint8Array): void {
    this.#disposeLast();
    // Before the first frame, the canvas is transparent black, so "previous" equals "background", as the specification
    // demands.
    if (placement.dispose === 'previous') this.#kept = this.pixels.slice();
    const rowBytes = placement.widthPx * CHANNELS;
    for (const [row, below] of this.#rows(placement)) {
      const over = patch.subarray(row * rowBytes, (row + 1) * rowBytes);
      if (placement.blend === 'source') below.set(over);
      else blendOver(below, over);
    }
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
      const start = ((topPx + row) * this.#widthPx + leftPx) * CHANNELS;
      yield [row, this.pixels.subarray(start, start + widthPx * CHANNELS)];
    }
  }
}

/** Composites pixels over others: the operation "over" of straight alpha. */
function blendOver(below: Uint8Array, over: Uint8Array): void {
  for (let at = 0; at < below.length; at += CHANNELS) {
    const alpha = over[at + 3] ?? 0;
    if (alpha === 0) continue;
    const alphaBelow = below[at + 3] ?? 0;
    if (alpha === OPAQUE || alphaBelow === 0) {
      for (let sample = at; sample < at + CHANNELS; sample += 1) below[sample] = over[sample] ?? 0;
      continue;
    }
    // Contributions of both, in units of 1 / 255².
    const share = alpha * OPAQUE;
    const shareBelow = alphaBelow * (OPAQUE - alpha);
    const sum = share + shareBelow;
    for (let sample = at; sample < at + 3; sample += 1) {
      const mixed = (over[sample] ?? 0) * share + (below[sample] ?? 0) * shareBelow;
      below[sample] = Math.round(mixed / sum);
    }
    below[at + 3] = Math.round(sum / OPAQUE);
  }
}
