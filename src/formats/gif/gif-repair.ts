import type { Size } from '../image-facts.ts';
import { gifLabel, MAX_CODE_BITS, walkGifBlocks } from './gif-blocks.ts';

/** What the decoder makes of one image and of the graphic control extensions before it. */
interface GifFrame {
  /** Offset of the image descriptor. */
  readonly start: number;
  /** Offset of the LZW code size, which the sub-blocks with the pixels follow. */
  readonly data: number;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly delayCs: number;
  /** The packed field of GIF89a §23, without the transparency flag. */
  readonly disposal: number;
  readonly isTransparent: boolean;
}

const EXTENSION = 0x21;
const TRANSPARENCY_FLAG = 0x01;
const DISPOSAL_MASK = 0x1c;
const TO_BACKGROUND = 2 << 2;
/** What libnsgif takes where there is no graphic control extension. */
const DEFAULT_DELAY_CS = 10;

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

/** The frames as `readGifHeader` counts them; undefined where the file ends within a block. */
function readFrames(gif: Uint8Array): GifFrame[] | undefined {
  const frames: GifFrame[] = [];
  const byte = (offset: number): number => gif[offset] ?? 0;
  const u16 = (offset: number): number => byte(offset) | (byte(offset + 1) << 8);
  const opaque = { delayCs: DEFAULT_DELAY_CS, disposal: 0, isTransparent: false };
  let control = opaque;
  const end = walkGifBlocks(gif, {
    onExtension: (label, start) => {
      if (label !== gifLabel.graphicControl) return;
      const packed = byte(start + 3);
      control = {
        delayCs: u16(start + 4),
        disposal: packed & DISPOSAL_MASK,
        // Once set it stays, whatever a further extension says.
        isTransparent: control.isTransparent || (packed & TRANSPARENCY_FLAG) !== 0,
      };
    },
    onImage: (start, data) => {
      const [left, top] = [u16(start + 1), u16(start + 3)];
      const [right, bottom] = [left + u16(start + 5), top + u16(start + 7)];
      frames.push({ start, data, left, top, right, bottom, ...control });
      control = opaque;
    },
  });
  return end.kind === 'truncated' ? undefined : frames;
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
    const delay = [delayCs & 0xff, delayCs >> 8];
    const control = [EXTENSION, gifLabel.graphicControl, 4, flags, ...delay, index, 0];
    parts.push(gif.subarray(copied, start), Uint8Array.from(control));
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
  const rootBits = gif[data] ?? 0;
  // Few colours: data cannot tell of an index that has no root code.
  if (rootBits < 8) return INDICES - 1;
  const clear = 1 << rootBits;
  const used = new Uint8Array(INDICES);
  let codeBits = rootBits + 1;
  let entries = clear + 1; // one less than there are: the first code after a clear adds none
  let pool = 0;
  let poolBits = 0;
  let blockEnd = data + 1;
  for (let at = data + 1; ; at += 1) {
    if (at === blockEnd) {
      const size = gif[at] ?? 0;
      if (size === 0) break;
      blockEnd += 1 + size;
      continue;
    }
    pool |= (gif[at] ?? 0) << poolBits;
    poolBits += 8;
    if (poolBits < codeBits) continue;
    const code = pool & ((1 << codeBits) - 1);
    pool >>= codeBits;
    poolBits -= codeBits;
    if (code === clear + 1) break;
    if (code === clear) {
      codeBits = rootBits + 1;
      entries = clear + 1;
      continue;
    }
    if (code < clear) used[code % INDICES] = 1;
    entries += 1;
    if (entries === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
  }
  const unused = used.indexOf(0);
  return unused < 0 ? undefined : unused;
}
