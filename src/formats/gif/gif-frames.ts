import { corruptMedia } from '../byte-reader.ts';
import type { Animation, Size } from '../image-facts.ts';
import {
  colourTableBytes,
  type GifEnd,
  type GifVisitor,
  gifLabel,
  SCREEN_BYTES,
  walkGifBlocks,
} from './gif-blocks.ts';
import { walkCodes } from './gif-lzw.ts';
import { beginGif, controlExtension, delaysOf, END_OF_GIF } from './gif-writer.ts';

/** One image as the decoder sees it, with its graphic control extensions; offsets as in `GifVisitor.onImage`. */
export interface GifFrame {
  readonly start: number;
  readonly data: number;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly delayCs: number;
  /** The packed field of GIF89a §23, without the transparency flag. */
  readonly disposal: number;
  readonly isTransparent: boolean;
  readonly transparentIndex: number;
}

/** Flag in the packed field of GIF89a §23. */
const TRANSPARENCY_FLAG = 0x01;
const DISPOSAL_MASK = 0x1c;

/** Default of libnsgif without a graphic control extension. */
const DEFAULT_DELAY_CS = 10;

/** Reads the frames of a GIF, and where they end; calls the visitor for each block before it counts. */
export function readFrames(
  gif: Uint8Array,
  visitor: GifVisitor = {},
): { readonly frames: readonly GifFrame[]; readonly end: GifEnd } {
  const frames: GifFrame[] = [];
  const byte = (offset: number): number => gif[offset] ?? 0;
  const u16 = (offset: number): number => byte(offset) | (byte(offset + 1) << 8);
  const opaque = {
    delayCs: DEFAULT_DELAY_CS,
    disposal: 0,
    isTransparent: false,
    transparentIndex: 0,
  };
  let control = opaque;
  const end = walkGifBlocks(gif, {
    onExtension: (label, start, end) => {
      visitor.onExtension?.(label, start, end);
      if (label !== gifLabel.graphicControl) return;
      const packed = byte(start + 3);
      const isTransparent = (packed & TRANSPARENCY_FLAG) !== 0;
      control = {
        delayCs: u16(start + 4),
        disposal: packed & DISPOSAL_MASK,
        // The flag stays set, even if a later extension clears it.
        isTransparent: control.isTransparent || isTransparent,
        transparentIndex: isTransparent ? byte(start + 6) : control.transparentIndex,
      };
    },
    onImage: (start, data, end) => {
      visitor.onImage?.(start, data, end);
      const [left, top] = [u16(start + 1), u16(start + 3)];
      const [right, bottom] = [left + u16(start + 5), top + u16(start + 7)];
      frames.push({ start, data, left, top, right, bottom, ...control });
      control = opaque;
    },
  });
  return { frames, end };
}

const TO_BACKGROUND = 2 << 2;

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
 * @returns the same bytes if there is nothing to repair
 */
export function repairGif(gif: Uint8Array, canvas: Size): Uint8Array {
  const { frames } = readFrames(gif);
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
 * what the decoder has seen, so an index occurs if its own code does. Returns `undefined` if all 256 indices occur.
 *
 * @param gif a GIF whose sub-blocks are known to end
 * @param data offset of the byte with the bits of a root code; the sub-blocks follow
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

/**
 * Rewrites a GIF with only its visible parts: colour tables, images with their compressed data unchanged, delays,
 * disposals and loops; drops comments, text, other extensions, and all bytes behind the last code of an image or behind
 * the trailer.
 *
 * @param gif a GIF that `readGifHeader` reports as rewritable
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
  for (const [index, frame] of readFrames(gif).frames.entries()) {
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
