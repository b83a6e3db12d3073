import { gifLoop, join, type Size, u16le } from '../../formats/containers.ts';
import { BitWriter } from '../../hostile/bombs/bomb.ts';
import { gifSubBlocks } from '../../hostile/bombs/gif-bombs.ts';

interface DrawnFrame {
  readonly left?: number;
  readonly top?: number;
  readonly widthPx: number;
  /** Colour indices, row by row. */
  readonly pixels: readonly number[];
  /** Graphic control extensions before it: packed field, delay in centiseconds, index. */
  readonly controls?: readonly (readonly [packed: number, delayCs: number, index: number])[];
}

interface DrawnGif extends Size {
  /** Bits of an index. The colour table has 2^bits entries; entry i is (i, 255 − i, 7). */
  readonly indexBits: number;
  /** Repeats in the NETSCAPE extension. Omit for a GIF without it. */
  readonly repeats?: number;
  readonly frames: readonly DrawnFrame[];
}

/** A graphic control extension, by default with a delay of 100 ms. */
export const control = (packed: number, delayCs = 10, index = 0) =>
  [packed, delayCs, index] as const;

/** Draws a GIF (GIF89a) without the code under test. */
export function drawGif({ widthPx, heightPx, indexBits, repeats, frames }: DrawnGif): Buffer {
  const colours = Array.from({ length: 2 ** indexBits }, (_, index) => [index, 255 - index, 7]);
  return join(
    ...['GIF89a', u16le(widthPx, heightPx), 0xf0 | (indexBits - 1), 0, 0, ...colours.flat()],
    repeats === undefined ? '' : gifLoop(repeats),
    ...frames.map((frame) => drawFrame(frame, indexBits)),
    ';',
  );
}

function drawFrame(frame: DrawnFrame, indexBits: number): Buffer {
  const { left = 0, top = 0, widthPx, pixels, controls = [] } = frame;
  const blocks = controls.map(([packed, delayCs, index]) =>
    join('!', 0xf9, 4, packed, u16le(delayCs), index, 0),
  );
  const box = u16le(left, top, widthPx, pixels.length / widthPx);
  return join(...blocks, ',', box, 0, compressIndices(pixels, Math.max(2, indexBits)));
}

/** Compresses indices (GIF89a, appendix F), with code size and sub-blocks. `clears`: whether a full table is cleared. */
export function compressIndices(
  pixels: readonly number[],
  rootBits: number,
  { clears = true } = {},
): Buffer {
  const clear = 2 ** rootBits;
  const writer = new BitWriter();
  let codeBits = rootBits + 1;
  writer.write(clear, codeBits);
  /** By code and following index. */
  const strings = new Map<number, number>();
  let code = pixels[0] ?? 0;
  for (const index of pixels.slice(1)) {
    const longer = strings.get(code * 256 + index);
    if (longer !== undefined) {
      code = longer;
      continue;
    }
    writer.write(code, codeBits);
    const next = clear + 2 + strings.size;
    if (next < 4096) {
      strings.set(code * 256 + index, next);
      if (next === 2 ** codeBits) codeBits += 1;
    } else if (clears) {
      writer.write(clear, codeBits);
      strings.clear();
      codeBits = rootBits + 1;
    }
    code = index;
  }
  writer.write(code, codeBits).write(clear + 1, codeBits);
  return join(rootBits, gifSubBlocks(writer.toBuffer()));
}
