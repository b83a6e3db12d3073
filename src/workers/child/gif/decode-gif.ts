import { corruptMedia } from '../../../formats/byte-reader.ts';
import { colourTableBytes, SCREEN_BYTES } from '../../../formats/gif/gif-blocks.ts';
import {
  canvasOf,
  type GifFrame,
  readFrames,
  unpackedPixels,
} from '../../../formats/gif/gif-frames.ts';
import { unpackIndices } from '../../../formats/gif/gif-lzw.ts';
import type { FramePlacement } from '../../../formats/image-header.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { FrameCanvas, joinFrames } from '../compose-frames.ts';
import { checkDecodedSize } from '../open-original.ts';
import type { Pixels } from '../pixels.ts';

/**
 * Decodes a GIF and composes its frames as Chromium does. libnsgif, the decoder of libvips, ignores common sizes of the
 * logical screen, and clears opaque frames to the background colour.
 *
 * @param batchFrames number of complete frames that are yielded at a time, one below the other
 * @throws MediaError `UNPROCESSABLE_MEDIA` if a frame's data are damaged, or the size of the canvas is not the planned
 *   one
 */
export async function* decodeGif(
  gif: Uint8Array,
  { originalSize }: Pick<RenderJob, 'originalSize'>,
  batchFrames: number,
): AsyncGenerator<Pixels, void> {
  const frames = readFrames(gif);
  const [first] = frames;
  if (first === undefined) throw corruptMedia('GIF: no frames');
  checkDecodedSize(canvasOf(gif, first), originalSize);
  const canvas = new FrameCanvas(originalSize);
  drawFrame(gif, first, canvas);
  function* draw(): Generator<void> {
    yield;
    for (const frame of frames.slice(1)) {
      drawFrame(gif, frame, canvas);
      yield;
    }
  }
  const { widthPx, heightPx } = originalSize;
  const paintsAll =
    !first.isTransparent && covers(first, { left: 0, top: 0, right: widthPx, bottom: heightPx });
  const channels = (paintsAll || isOpaque(canvas)) && !mayShowThrough(frames) ? 3 : 4;
  yield* joinFrames(canvas, draw(), { channels, batchFrames });
}

function isOpaque({ pixels }: FrameCanvas): boolean {
  return new Uint32Array(pixels.buffer).every((pixel) => pixel >= OPAQUE_BLACK);
}

/** Whether pixels may become transparent after the first frame: one is cleared, and the next does not hide it. */
function mayShowThrough(frames: readonly GifFrame[]): boolean {
  return frames.some((frame, index) => {
    const next = frames[index + 1];
    if (next === undefined || disposeOf(frame) === 'none') return false;
    return next.isTransparent || !covers(next, frame);
  });
}

type Area = Pick<GifFrame, 'left' | 'top' | 'right' | 'bottom'>;

function covers(one: Area, other: Area): boolean {
  return (
    one.left <= other.left &&
    one.top <= other.top &&
    one.right >= other.right &&
    one.bottom >= other.bottom
  );
}

/** Browsers restore for the undefined 4 as for 3, because encoders write it. */
function disposeOf({ disposal }: GifFrame): FramePlacement['dispose'] {
  if (disposal === 2 << 2) return 'background';
  return disposal === 3 << 2 || disposal === 4 << 2 ? 'previous' : 'none';
}

function drawFrame(gif: Uint8Array, frame: GifFrame, canvas: FrameCanvas): void {
  const { left, top, right, bottom, isTransparent, transparentIndex } = frame;
  const { size } = canvas;
  const [widthPx, heightPx] = [right - left, bottom - top];
  const shownPx = Math.max(0, Math.min(right, size.widthPx) - left);
  const shownRows = Math.max(0, Math.min(bottom, size.heightPx) - top);
  canvas.begin({
    leftPx: left,
    topPx: top,
    widthPx: shownPx,
    heightPx: shownRows,
    blend: 'over',
    dispose: disposeOf(frame),
  });
  const indices = new Uint8Array(unpackedPixels(frame, size));
  const { isValid, pixels } = unpackIndices(gif, frame.data, indices);
  if (!isValid) throw corruptMedia('GIF: an undefined code');
  const target = new Uint32Array(canvas.pixels.buffer);
  const colours = readColours(gif, frame);
  const invisible = isTransparent ? transparentIndex : -1;
  let from = 0;
  for (const row of frame.isInterlaced ? interlacedRows(heightPx) : plainRows(shownRows)) {
    const end = Math.min(from + shownPx, pixels);
    if (row < shownRows) {
      let to = (top + row) * size.widthPx + left;
      for (let at = from; at < end; at += 1, to += 1) {
        const index = indices[at];
        if (index !== invisible) target[to] = colours[index];
      }
    }
    from += widthPx;
  }
}

const PALETTE_COLOURS = 256;
const OPAQUE_BLACK = 0xff_00_00_00;

/** Returns the colours as words, alpha highest, red lowest; those that the table lacks are black. */
function readColours(gif: Uint8Array, { start }: GifFrame): Uint32Array {
  const colours = new Uint32Array(PALETTE_COLOURS).fill(OPAQUE_BLACK);
  const ownBytes = colourTableBytes(gif[start + 9]);
  const first = ownBytes > 0 ? start + 10 : SCREEN_BYTES;
  const bytes = ownBytes > 0 ? ownBytes : colourTableBytes(gif[10]);
  for (let at = first, index = 0; at < first + bytes; at += 3, index += 1) {
    const [red = 0, green = 0, blue = 0] = [gif[at], gif[at + 1], gif[at + 2]];
    colours[index] = (OPAQUE_BLACK | (blue << 16) | (green << 8) | red) >>> 0;
  }
  return colours;
}

function* plainRows(rows: number): Generator<number> {
  for (let row = 0; row < rows; row += 1) yield row;
}

/** GIF89a appendix E. */
function* interlacedRows(rows: number): Generator<number> {
  for (const [first, step] of [
    [0, 8],
    [4, 8],
    [2, 4],
    [1, 2],
  ] as const) {
    for (let row = first; row < rows; row += step) yield row;
  }
}
