import type { Size } from '../image-facts.ts';
import { type GifFrame, readFrames, TRANSPARENCY_FLAG } from './gif-frames.ts';
import { walkCodes } from './gif-lzw.ts';
import { controlExtension } from './gif-writer.ts';

const TO_BACKGROUND = 2 << 2;

/** Indices a pixel can have. */
const INDICES = 256;

/**
 * Repairs a GIF for libnsgif, the decoder of libvips, which knows no transparency but that of a
 * frame with the transparency flag: without it, a frame that is disposed to the background leaves
 * the background colour; and where no frame has it, what no frame has painted is black. Browsers
 * clear to transparent in both cases (measured: Chromium).
 *
 * Each frame without the flag is given it, with an index that none of its pixels uses, in a graphic
 * control extension of its own just before the image: the last one counts. Frames, delays, disposals
 * and loops stay as they are.
 *
 * Not repaired: a frame that uses all 256 indices has none to spare and stays without the flag.
 * Neither is the logical screen that libnsgif ignores (gif-header.ts): there the canvas would have
 * to come from a first frame that fills it, and so from new LZW data.
 *
 * @param canvas size of a frame as the decoder gives it
 * @returns the same bytes where there is nothing to repair, or no way through the blocks
 */
export function repairGif(gif: Uint8Array, canvas: Size): Uint8Array {
  const frames = readFrames(gif);
  if (frames === undefined) return gif; // it is for the decoder to refuse it
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
 * Finds a colour index that does not occur in LZW data, without unpacking them: the codes of longer
 * strings only repeat what the decoder has seen, so an index occurs if its own code does.
 *
 * @param gif a GIF whose sub-blocks have been found to end
 * @param data offset of the byte with the bits of a root code; the sub-blocks follow
 * @returns `undefined` where all 256 indices occur
 */
export function findUnusedIndex(gif: Uint8Array, data: number): number | undefined {
  // Few colours: data cannot tell of an index that has no root code.
  if ((gif[data] ?? 0) < 8) return INDICES - 1;
  const used = new Uint8Array(INDICES);
  walkCodes(gif, data, Number.POSITIVE_INFINITY, (index) => {
    used[index % INDICES] = 1;
  });
  const unused = used.indexOf(0);
  return unused < 0 ? undefined : unused;
}
