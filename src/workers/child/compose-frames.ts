import type { FramePatch } from '../../formats/image-facts.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { FrameCanvas } from './frame-canvas.ts';
import { decodeStrictly, openStill } from './open-original.ts';
import { type Pixels, toPixels } from './pixels.ts';

const CHANNELS = 4;

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
