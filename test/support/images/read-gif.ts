/** An image of a GIF, as its bytes say. */
export interface ReadImage {
  readonly left: number;
  readonly top: number;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Entries of the colour table that holds for it. */
  readonly colours: number;
  readonly hasOwnTable: boolean;
  /** `undefined` without the flag. */
  readonly transparentIndex: number | undefined;
  readonly indices: readonly number[];
}

/** Reads the images of a well-formed GIF by GIF89a, with none of the code under test. */
export function readGifImages(gif: Uint8Array): ReadImage[] {
  const u8 = (at: number): number => gif[at] ?? 0;
  const u16 = (at: number): number => u8(at) | (u8(at + 1) << 8);
  const tableOf = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 2 << (flags & 7));
  const global = tableOf(u8(10));
  let at = 13 + 3 * global;
  const readBlocks = (): number[] => {
    const data: number[] = [];
    for (; u8(at) > 0; at += 1 + u8(at)) data.push(...gif.subarray(at + 1, at + 1 + u8(at)));
    at += 1;
    return data;
  };
  const images: ReadImage[] = [];
  let transparentIndex: number | undefined;
  while (u8(at) !== 0x3b) {
    if (at >= gif.length) throw new Error('The GIF has no trailer.');
    const code = u8(at);
    if (code === 0x21) {
      if (u8(at + 1) === 0xf9) transparentIndex = (u8(at + 3) & 1) === 0 ? undefined : u8(at + 6);
      at += 2;
      readBlocks();
    } else if (code === 0x2c) {
      const [left, top, widthPx, heightPx] = [u16(at + 1), u16(at + 3), u16(at + 5), u16(at + 7)];
      const own = tableOf(u8(at + 9));
      at += 10 + 3 * own;
      const rootBits = u8(at);
      at += 1;
      images.push({
        ...{ left, top, widthPx, heightPx, transparentIndex },
        colours: own || global,
        hasOwnTable: own > 0,
        indices: unpackIndices(readBlocks(), rootBits),
      });
      transparentIndex = undefined;
    } else {
      throw new Error(`There is no block with the code ${code}.`);
    }
  }
  return images;
}

/** Unpacks by GIF89a appendix F, up to the end code, which must be there. */
function unpackIndices(data: readonly number[], rootBits: number): number[] {
  const clear = 2 ** rootBits;
  let strings: number[][] = [];
  let codeBits = rootBits + 1;
  let before: number[] | undefined;
  const indices: number[] = [];
  const start = (): void => {
    strings = Array.from({ length: clear + 2 }, (_, index) => [index]);
    codeBits = rootBits + 1;
    before = undefined;
  };
  start();
  for (let bit = 0; ; ) {
    if (bit + codeBits > 8 * data.length) throw new Error('The data have no end code.');
    let code = 0;
    for (let each = 0; each < codeBits; each += 1) {
      code |= (((data[(bit + each) >> 3] ?? 0) >> ((bit + each) & 7)) & 1) << each;
    }
    bit += codeBits;
    if (code === clear + 1) return indices;
    if (code === clear) {
      start();
      continue;
    }
    const known = strings[code];
    if (known === undefined && (before === undefined || code !== strings.length)) {
      throw new Error(`The code ${code} is not there yet.`);
    }
    const string: number[] = known ?? [...(before ?? []), before?.[0] ?? 0];
    if (before !== undefined && strings.length < 4096) {
      strings.push([...before, string[0] ?? 0]);
      if (strings.length === 2 ** codeBits && codeBits < 12) codeBits += 1;
    }
    indices.push(...string);
    before = string;
  }
}
