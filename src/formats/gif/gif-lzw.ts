import { MAX_CODE_BITS } from './gif-blocks.ts';

const MAX_CODES = 1 << MAX_CODE_BITS;

/** Maximum data bytes of a sub-block (GIF89a §15). */
const MAX_BLOCK_BYTES = 255;

/** Slots of the hash table of strings, a power of two: several times the number of codes. */
const SLOTS = 1 << 14;

/** Returns code size and sub-blocks (GIF89a appendix F). @param indices by row; @param rootBits of an index, 2 to 8 */
export function compressIndices(indices: Uint8Array, rootBits: number): Uint8Array {
  const clear = 1 << rootBits;
  const output = new BlockWriter(rootBits);
  /** String per slot: its previous code and next index; -1 for an empty slot. */
  const strings = new Int32Array(SLOTS).fill(-1);
  const codes = new Uint16Array(SLOTS);
  let codeBits = rootBits + 1;
  let next = clear + 2;
  let code = indices[0] ?? 0;
  output.write(clear, codeBits);
  for (let at = 1; at < indices.length; at += 1) {
    const index = indices[at] ?? 0;
    const string = (code << 8) | index;
    let slot = Math.imul(string, 0x9e3779b1) >>> 18;
    while (strings[slot] !== string && strings[slot] !== -1) slot = (slot + 1) % SLOTS;
    if (strings[slot] === string) {
      code = codes[slot] ?? 0;
      continue;
    }
    output.write(code, codeBits);
    code = index;
    if (next < MAX_CODES) {
      if (next === 1 << codeBits) codeBits += 1;
      strings[slot] = string;
      codes[slot] = next;
      next += 1;
      continue;
    }
    output.write(clear, codeBits);
    strings.fill(-1);
    codeBits = rootBits + 1;
    next = clear + 2;
  }
  output.write(code, codeBits);
  if (next === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
  output.write(clear + 1, codeBits);
  return output.finish();
}

export interface Unpacking {
  /** False if an undefined code appears before the last pixel. */
  readonly isValid: boolean;
  /** Number of unpacked pixels; fewer than requested if the data end early. */
  readonly pixels: number;
  /** Offset after the last sub-block with codes. */
  readonly end: number;
}

/**
 * Unpacks the colour indices of an image (GIF89a appendix F). If the data end early, the remaining pixels stay
 * unchanged, as in libnsgif and browsers.
 *
 * @param gif a GIF whose sub-blocks are known to end
 * @param data offset of the root code size, before the sub-blocks
 * @param indices receives the pixels, row by row; damage after the last of them is ignored
 */
export function unpackIndices(gif: Uint8Array, data: number, indices: Uint8Array): Unpacking {
  const rootBits = gif[data] ?? 0;
  const clear = 1 << rootBits;
  const pixels = indices.length;
  // A string is the previous string and the pixel after it, which are adjacent in the output.
  const starts = new Int32Array(MAX_CODES);
  const lengths = new Uint16Array(MAX_CODES);
  let codeBits = rootBits + 1;
  let entries = clear + 2;
  let start = 0;
  /** Pixels of the previous code; 0 after a clear code. */
  let length = 0;
  let pool = 0;
  let poolBits = 0;
  let blockEnd = data + 1;
  const finish = (isValid: boolean, end: number): Unpacking => {
    return { isValid, pixels: Math.min(start + length, pixels), end };
  };
  for (let at = data + 1; ; at += 1) {
    if (at === blockEnd) {
      const size = gif[at] ?? 0;
      if (size === 0) return finish(true, at);
      blockEnd += 1 + size;
      continue;
    }
    pool |= (gif[at] ?? 0) << poolBits;
    poolBits += 8;
    while (poolBits >= codeBits) {
      const code = pool & ((1 << codeBits) - 1);
      pool >>>= codeBits;
      poolBits -= codeBits;
      const next = start + length;
      if (code === clear) {
        codeBits = rootBits + 1;
        entries = clear + 2;
        start = next;
        length = 0;
        continue;
      }
      const isEnd = code === clear + 1 && length > 0;
      if (isEnd || code > (length === 0 ? clear : entries)) {
        return finish(isEnd || next >= pixels, blockEnd);
      }
      if (length > 0 && entries < MAX_CODES) {
        starts[entries] = start;
        lengths[entries] = length + 1;
        entries += 1;
        if (entries === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
      }
      start = next;
      if (code < clear) {
        length = 1;
        if (start < pixels) indices[start] = code;
        continue;
      }
      length = lengths[code] ?? 0;
      const end = Math.min(start + length, pixels);
      for (let to = start, from = starts[code] ?? 0; to < end; to += 1, from += 1) {
        indices[to] = indices[from] ?? 0;
      }
    }
  }
}

class BlockWriter {
  #bytes = new Uint8Array(1024);
  #length = 2;
  /** Offset of the size byte of the current sub-block. */
  #sizeAt = 1;
  #pool = 0;
  #poolBits = 0;

  constructor(rootBits: number) {
    this.#bytes[0] = rootBits;
  }

  write(code: number, bits: number): void {
    this.#pool |= code << this.#poolBits;
    this.#poolBits += bits;
    while (this.#poolBits >= 8) {
      this.#writeByte(this.#pool & 0xff);
      this.#pool >>>= 8;
      this.#poolBits -= 8;
    }
  }

  finish(): Uint8Array {
    if (this.#poolBits > 0) this.#writeByte(this.#pool & 0xff);
    const size = this.#length - this.#sizeAt - 1;
    this.#bytes[this.#sizeAt] = size;
    // An empty block already ends the sub-blocks.
    if (size > 0) this.#append(0);
    return this.#bytes.subarray(0, this.#length);
  }

  #writeByte(byte: number): void {
    if (this.#length - this.#sizeAt > MAX_BLOCK_BYTES) {
      this.#bytes[this.#sizeAt] = MAX_BLOCK_BYTES;
      this.#sizeAt = this.#length;
      this.#append(0);
    }
    this.#append(byte);
  }

  #append(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const longer = new Uint8Array(2 * this.#length);
      longer.set(this.#bytes);
      this.#bytes = longer;
    }
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }
}
