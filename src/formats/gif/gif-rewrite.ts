import { corruptMedia } from '../byte-reader.ts';
import type { Animation, Size } from '../image-facts.ts';
import { colourTableBytes, SCREEN_BYTES } from './gif-blocks.ts';
import { type GifFrame, readFrames, TRANSPARENCY_FLAG } from './gif-frames.ts';
import { walkCodes } from './gif-lzw.ts';
import { beginGif, controlExtension, delaysOf, END_OF_GIF } from './gif-writer.ts';

/**
 * Rewrites a GIF with only its visible parts: colour tables, images with their compressed data unchanged, delays,
 * disposals and loops; drops comments, text, other extensions, and all bytes behind the last code of an image or behind
 * the trailer.
 *
 * @param gif a GIF that `readGifHeader` reports as rewritable
 * @param canvas size of a frame as the decoder returns it
 * @param animation of the GIF; `undefined` for a still
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the data of an image are damaged, by the decoder's rules
 */
export function rewriteGif(
  gif: Uint8Array,
  canvas: Size,
  animation: Animation | undefined,
): Uint8Array {
  const screenFlags = gif[10] ?? 0;
  const settings = gif.subarray(10, SCREEN_BYTES + colourTableBytes(screenFlags));
  const parts = beginGif(canvas, settings, animation);
  const delaysCs = delaysOf(animation);
  for (const [index, frame] of (readFrames(gif) ?? []).entries()) {
    const { isSound, end } = walkCodes(gif, frame.data, visiblePixels(frame, canvas));
    if (!isSound) throw corruptMedia(`GIF: a code in image ${index + 1} that is not there yet`);
    if (animation !== undefined || frame.isTransparent) {
      const flags = frame.disposal | (frame.isTransparent ? TRANSPARENCY_FLAG : 0);
      parts.push(controlExtension(flags, delaysCs[index] ?? 0, frame.transparentIndex));
    }
    parts.push(gif.subarray(frame.start, end), Uint8Array.of(0));
  }
  return Buffer.concat([...parts, END_OF_GIF]);
}

/** Counts the pixels that the decoder reads: it skips rows below the canvas. */
function visiblePixels({ left, top, right, bottom }: GifFrame, canvas: Size): number {
  const { widthPx, heightPx } = canvas;
  if (left >= widthPx || top >= heightPx) return 0;
  const rows = Math.min(bottom, heightPx) - top;
  return Math.max(0, (right - left) * rows - Math.max(0, right - widthPx));
}
