import { roundDelays } from '../delay-rounding.ts';
import type { Animation } from '../image-facts.ts';
import { formatAnimation, MAX_DURATION_MS, parseWebp, type WebpFrame } from './webp-container.ts';

/**
 * Delay in milliseconds that the encoder must be given for every frame, so that the duration of an encoded frame
 * reveals how many source frames libwebp has merged into it.
 *
 * Over 10 ms, because libvips replaces delays up to that by 100 ms. A duration has 24 bits (RFC 9649 §2.7.1.1), enough
 * for 838 860 merged frames; beyond, libwebp itself starts another frame, a transparent one of 1×1 px (anim_encode.c),
 * and the sum still holds.
 */
export const SENTINEL_DELAY_MS = 20;

/**
 * Restores the exact delays and the play count of an animated WebP, which its encoder could not keep.
 *
 * `encoded` is a whole file, encoded with {@link SENTINEL_DELAY_MS} for every frame. Where libwebp has merged k equal
 * frames into one, the merged frame gets the first delay, and k − 1 blank frames follow with the other delays:
 * transparent and blended, so the canvas stays the same. A blank frame costs 40 bytes. If all frames are equal, libwebp
 * writes a still; the still becomes an animation again, and counts as one frame per delay, since nothing in the file
 * reveals their number.
 *
 * Delays are rounded (`roundDelays`) and clamped to 0 to 2^24 − 1 ms, plays to 0 to 65535. The canvas, its background
 * colour and the compressed pixels are kept; EXIF, XMP, ICC (so the pixels must be sRGB) and unknown chunks are
 * dropped. Every frame looks as before; the red, green and blue that a decoder leaves under an alpha of 0 may differ.
 *
 * Throws a plain Error if `encoded` is not such a file or does not represent `delaysMs.length` frames.
 */
export function restoreAnimation(encoded: Uint8Array, animation: Animation): Buffer {
  const { plays } = animation;
  const delaysMs = roundDelays(animation.delaysMs, 1, MAX_DURATION_MS);
  const { isAnimated, ...webp } = parseWebp(encoded);
  let sourceFrames = 0;
  const frames = webp.frames.flatMap((frame) => {
    const first = sourceFrames;
    sourceFrames += isAnimated ? countSourceFrames(frame) : delaysMs.length;
    return splitFrame(frame, delaysMs.slice(first, sourceFrames));
  });
  if (sourceFrames !== delaysMs.length || sourceFrames === 0) {
    throw new Error(
      `Expected ${delaysMs.length} source frames in the WebP but received ${sourceFrames}`,
    );
  }
  return formatAnimation({ ...webp, frames, plays });
}

function countSourceFrames({ durationMs }: WebpFrame): number {
  const count = durationMs / SENTINEL_DELAY_MS;
  if (!Number.isInteger(count) || count === 0) {
    throw new Error(
      `Expected a multiple of ${SENTINEL_DELAY_MS} ms for a frame but received ${durationMs} ms`,
    );
  }
  return count;
}

/** Returns the frame with the first of the delays, and a frame without effect for each of the others. */
function splitFrame(frame: WebpFrame, delaysMs: readonly number[]): WebpFrame[] {
  return delaysMs.map((durationMs, index) => {
    // The rectangle is visible until the end of the last delay, and cleared only then.
    const disposes = frame.disposes && index === delaysMs.length - 1;
    if (index === 0) return { ...frame, durationMs, disposes };
    const pixel = { xHalved: 0, yHalved: 0, widthPx: 1, heightPx: 1 };
    const { xHalved, yHalved, widthPx, heightPx } = disposes ? frame : pixel;
    const payload = createTransparentVp8l(widthPx, heightPx);
    const image = [{ fourCc: 'VP8L', payload }];
    return { xHalved, yHalved, widthPx, heightPx, durationMs, blends: true, disposes, image };
  });
}

/**
 * Creates the VP8L bitstream of a fully transparent black image: 8 bytes for any size (payload of a `VP8L` chunk, RFC
 * 9649 §3).
 *
 * Byte by byte: the signature 0x2f; 32 bits of header, low bits first: width − 1 (14 bits), height − 1 (14), alpha is
 * used (1), version 0 (3); then 24 bits: no transform, no colour cache, no meta prefix codes (a zero bit each) and five
 * prefix codes of the bits 1 0 0 0, that is: simple, one symbol, of one bit, which is 0. A code with one symbol takes
 * no bit per pixel, so no pixel data follows.
 *
 * Both edges are integers of 1 to 16384 px, the bound for images in a WebP (RFC 9649 §2.5 and §3.4).
 */
export function createTransparentVp8l(widthPx: number, heightPx: number): Buffer {
  const bitstream = Buffer.from([0x2f, 0, 0, 0, 0, 0x88, 0x88, 0x08]);
  bitstream.writeUInt32LE((widthPx - 1) | ((heightPx - 1) << 14) | (1 << 28), 1);
  return bitstream;
}
