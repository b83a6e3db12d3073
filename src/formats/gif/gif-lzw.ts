import { MAX_CODE_BITS } from './gif-blocks.ts';

const MAX_CODES = 1 << MAX_CODE_BITS;

/** Most data bytes of a sub-block (GIF89a §15). */
const MAX_BLOCK_BYTES = 255;

/** Slots of the table of strings, a power of two: several times as many as there are codes. */
const SLOTS = 1 << 14;

/**
 * Packs the colour indices of an image (GIF89a appendix F).
 *
 * @param indices row by row
 * @param rootBits bits of an index, 2 to 8
 * @returns what follows the image descriptor and its colour table: code size, sub-blocks and their end
 */
export function compressIndices(indices: Uint8Array, rootBits: number): Uint8Array {
  const clear = 1 << rootBits;
  const output = new BlockWriter(rootBits);
  /** Per slot a string, as the code before and the index that follows; -1 where there is none. */
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

/** Packs codes into sub-blocks. */
class BlockWriter {
  #bytes = new Uint8Array(1024);
  #length = 2;
  /** Where the size of the sub-block stands that is being filled. */
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
    // A block of no bytes is the end already.
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
