/** One image of a GIF, pixel by pixel. */
export interface DrawnFrame {
  readonly left?: number;
  readonly top?: number;
  readonly widthPx: number;
  /** Colour indices, row by row. */
  readonly pixels: readonly number[];
  /** Graphic control extensions before it: packed field, delay in centiseconds, index. */
  readonly controls?: readonly (readonly [packed: number, delayCs: number, index: number])[];
}

export interface DrawnGif {
  readonly widthPx: number;
  readonly heightPx: number;
  /** Bits of an index; the colour table has 2^bits entries, of which entry i is (i, 255 − i, 7). */
  readonly indexBits: number;
  /** Repeats of a NETSCAPE extension; none without. */
  readonly repeats?: number;
  readonly frames: readonly DrawnFrame[];
}

/** Writes a GIF that says and shows exactly this, by GIF89a, with none of the code under test. */
export function drawGif({ widthPx, heightPx, indexBits, repeats, frames }: DrawnGif): Buffer {
  const colours = Array.from({ length: 2 ** indexBits }, (_, index) => [index, 255 - index, 7]);
  const loop = ['!\xff\x0bNETSCAPE2.0\x03\x01', ...u16(repeats ?? 0), 0];
  return join(
    ['GIF89a', ...u16(widthPx), ...u16(heightPx), 0xf0 | (indexBits - 1), 0, 0, ...colours.flat()],
    repeats === undefined ? [] : loop,
    ...frames.map((frame) => drawFrame(frame, indexBits)),
    [';'],
  );
}

function drawFrame(frame: DrawnFrame, indexBits: number): (number | string)[] {
  const { left = 0, top = 0, widthPx, pixels, controls = [] } = frame;
  const blocks = controls.flatMap(([packed, delayCs, index]) => [
    ...['!', 0xf9, 4, packed, ...u16(delayCs), index, 0],
  ]);
  const box = [left, top, widthPx, pixels.length / widthPx].flatMap(u16);
  return [...blocks, ',', ...box, 0, ...compressIndices(pixels, Math.max(2, indexBits))];
}

/**
 * Packs indices by GIF89a appendix F, code size and sub-blocks included.
 *
 * @param clears whether a full table is cleared; else the last one is kept to the end
 */
export function compressIndices(
  pixels: readonly number[],
  rootBits: number,
  { clears = true } = {},
): Buffer {
  const clear = 2 ** rootBits;
  const packed: number[] = [];
  let codeBits = rootBits + 1;
  let pool = 0;
  let poolBits = 0;
  const emit = (code: number): void => {
    pool |= code << poolBits;
    for (poolBits += codeBits; poolBits >= 8; poolBits -= 8) {
      packed.push(pool & 0xff);
      pool >>>= 8;
    }
  };
  emit(clear);
  /** By code and following index. */
  const strings = new Map<number, number>();
  let code = pixels[0] ?? 0;
  for (const index of pixels.slice(1)) {
    const longer = strings.get(code * 256 + index);
    if (longer !== undefined) {
      code = longer;
      continue;
    }
    emit(code);
    const next = clear + 2 + strings.size;
    if (next < 4096) {
      strings.set(code * 256 + index, next);
      if (next === 2 ** codeBits) codeBits += 1;
    } else if (clears) {
      emit(clear);
      strings.clear();
      codeBits = rootBits + 1;
    }
    code = index;
  }
  emit(code);
  emit(clear + 1);
  packed.push(pool & 0xff);
  const blocks: number[] = [];
  for (let at = 0; at < packed.length; at += 255) {
    const part = packed.slice(at, at + 255);
    blocks.push(part.length, ...part);
  }
  return Buffer.from([rootBits, ...blocks, 0]);
}

function u16(value: number): [number, number] {
  return [value & 0xff, value >> 8];
}

function join(...parts: readonly (readonly (number | string)[])[]): Buffer {
  return Buffer.concat(
    parts
      .flat()
      .map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part, 'latin1'))),
  );
}
