import { corruptMedia } from '../byte-reader.ts';
import type { Animation, Size } from '../image-header.ts';
import {
  colourTableBytes,
  type GifImageBlock,
  iterateGifBlocks,
  SCREEN_BYTES,
} from './gif-blocks.ts';
import { unpackIndices } from './gif-lzw.ts';
import { beginGif, controlExtension, delaysOf, END_OF_GIF } from './gif-writer.ts';

/** An image, with offsets as in `GifImageBlock`. */
export interface GifFrame {
  readonly start: number;
  readonly data: number;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly isInterlaced: boolean;
  readonly delayCs: number;
  /** The packed field of GIF89a §23, without the transparency flag. */
  readonly disposal: number;
  readonly isTransparent: boolean;
  readonly transparentIndex: number;
}

/** Flag in the packed field of GIF89a §23. */
const TRANSPARENCY_FLAG = 0x01;
const DISPOSAL_MASK = 0x1c;
/** Flag in the packed field of GIF89a §20. */
const INTERLACE_FLAG = 0x40;

/** Default delay in browsers, without a graphic control extension. */
const DEFAULT_DELAY_CS = 10;

export function readFrames(gif: Uint8Array): GifFrame[] {
  const frames: GifFrame[] = [];
  for (const block of iterateGifBlocks(gif)) {
    if (block.kind === 'image') frames.push(readFrame(gif, block));
  }
  return frames;
}

export function readFrame(gif: Uint8Array, { start, data, control }: GifImageBlock): GifFrame {
  const byte = (offset: number): number => gif[offset] ?? 0;
  const u16 = (offset: number): number => byte(offset) | (byte(offset + 1) << 8);
  const packed = control === undefined ? 0 : byte(control + 3);
  const [left, top] = [u16(start + 1), u16(start + 3)];
  return {
    start,
    data,
    left,
    top,
    right: left + u16(start + 5),
    bottom: top + u16(start + 7),
    isInterlaced: (byte(start + 9) & INTERLACE_FLAG) !== 0,
    delayCs: control === undefined ? DEFAULT_DELAY_CS : u16(control + 4),
    disposal: packed & DISPOSAL_MASK,
    isTransparent: (packed & TRANSPARENCY_FLAG) !== 0,
    transparentIndex: control === undefined ? 0 : byte(control + 6),
  };
}

/** Returns the size of the logical screen, enlarged if the first frame exceeds it, as in Chromium. */
export function canvasOf(gif: Uint8Array, first: GifFrame): Size {
  const u16 = (offset: number): number => (gif[offset] ?? 0) | ((gif[offset + 1] ?? 0) << 8);
  return {
    widthPx: Math.max(1, u16(6), first.right),
    heightPx: Math.max(1, u16(8), first.bottom),
  };
}

/** Counts the pixels to unpack for a frame: complete rows, down to the edge of the canvas. */
export function unpackedPixels(frame: GifFrame, canvas: Size): number {
  const { left, top, right, bottom, isInterlaced } = frame;
  const { widthPx, heightPx } = canvas;
  if (left >= widthPx || top >= heightPx) return 0;
  if (isInterlaced) return (right - left) * (bottom - top);
  const rows = Math.min(bottom, heightPx) - top;
  return Math.max(0, (right - left) * rows - Math.max(0, right - widthPx));
}

/**
 * Rewrites a GIF that `isRewritable` to its visible parts: colour tables, images with unchanged data, timing.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if our decoder would reject the data of an image
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
  for (const [index, frame] of readFrames(gif).entries()) {
    const indices = new Uint8Array(unpackedPixels(frame, canvas));
    const { isValid, end } = unpackIndices(gif, frame.data, indices);
    if (!isValid) throw corruptMedia(`GIF: a code in image ${index + 1} that is not defined yet`);
    if (animation !== undefined || frame.isTransparent) {
      const flags = frame.disposal | (frame.isTransparent ? TRANSPARENCY_FLAG : 0);
      parts.push(controlExtension(flags, delaysCs[index] ?? 0, frame.transparentIndex));
    }
    parts.push(gif.subarray(frame.start, end), Uint8Array.of(0));
  }
  return Buffer.concat([...parts, END_OF_GIF]);
}
