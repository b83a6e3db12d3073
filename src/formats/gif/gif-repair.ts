import type { Size } from '../image-facts.ts';
import { type GifFrame, readFrames, TRANSPARENCY_FLAG } from './gif-frames.ts';
import { walkCodes } from './gif-lzw.ts';
import { controlExtension } from './gif-writer.ts';

const TO_BACKGROUND = 2 << 2;

/** Number of indices that a pixel can have. */
const INDICES = 256;

/**
 * Repairs a GIF for libnsgif, the decoder of libvips, which knows transparency only in frames with the transparency
 * flag: a frame without the flag that is disposed to the background leaves the background colour; and if no frame has
 * the flag, pixels that no frame has painted are black. Browsers clear to transparent in both cases (measured:
 * Chromium).
 *
 * Each frame without the flag gets it, with an index that none of its pixels uses, in a new graphic control extension
 * just before the image: the last extension counts. Frames, delays, disposals and loops stay unchanged.
 *
 * Not repaired: a frame that uses all 256 indices, which stays without the flag; and the logical screen that libnsgif
 * ignores (gif-header.ts), for which the canvas would need a first frame that fills it, and so new LZW data.
 *
 * @param canvas size of a frame as the decoder returns it
 * @returns the same bytes if there is nothing to repair, or a block does not end
 */
export function repairGif(gif: Uint8Array, canvas: Size): Uint8Array {
  const frames = readFrames(gif);
  if (frames === undefined) return gif; // the decoder will reject the file
  return showsOpaqueBackground(frames, canvas) ? declareTransparency(gif, frames) : gif;
}

function showsOpaqueBackground(frames: readonly GifFrame[], canvas: Size): boolean {
  const [first] = frames;
  if (first === undefined) return false;
  const screen = { ...first, left: 0, top: 0, right: canvas.widthPx, bottom: canvas.heightPx };
  if (!covers(first, screen) && !frames.some(({ isTransparent }) => isTransparent)) return true;
  return frames.some((frame, index) => {
    const next = frames[index + 1];
    const isDisposed = !frame.isTransparent && frame.disposal === TO_BACKGROUND;
    return isDisposed && next !== undefined && (next.isTransparent || !covers(next, frame));
  });
}

function covers(one: GifFrame, other: GifFrame): boolean {
  return (
    one.left <= other.left &&
    one.top <= other.top &&
    one.right >= other.right &&
    one.bottom >= other.bottom
  );
}

function declareTransparency(gif: Uint8Array, frames: readonly GifFrame[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let copied = 0;
  for (const { start, data, delayCs, disposal, isTransparent } of frames) {
    const index = isTransparent ? undefined : findUnusedIndex(gif, data);
    if (index === undefined) continue;
    const flags = disposal | TRANSPARENCY_FLAG;
    parts.push(gif.subarray(copied, start), controlExtension(flags, delayCs, index));
    copied = start;
  }
  return copied === 0 ? gif : Buffer.concat([...parts, gif.subarray(copied)]);
}

/**
 * Finds a colour index that does not occur in LZW data, without unpacking the data: codes of longer strings only repeat
 * what the decoder has seen, so an index occurs if its own code does.
 *
 * @param gif a GIF whose sub-blocks are known to end
 * @param data offset of the byte with the bits of a root code; the sub-blocks follow
 * @returns `undefined` if all 256 indices occur
 */
export function findUnusedIndex(gif: Uint8Array, data: number): number | undefined {
  // With fewer root codes, data cannot contain the highest index.
  if ((gif[data] ?? 0) < 8) return INDICES - 1;
  const used = new Uint8Array(INDICES);
  walkCodes(gif, data, Number.POSITIVE_INFINITY, (index) => {
    used[index % INDICES] = 1;
  });
  const unused = used.indexOf(0);
  return unused < 0 ? undefined : unused;
}
