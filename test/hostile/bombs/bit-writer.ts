/** Writes numbers of any number of bits one after another. */
export class BitWriter {
  readonly #order: 'high first' | 'low first';
  readonly #bytes: number[] = [];
  #used = 0;

  /** @param order of the bits in a byte: AV1 and JPEG take the highest first, VP8L and GIF the lowest */
  constructor(order: 'high first' | 'low first') {
    this.#order = order;
  }

  /** @param count 0 to 32 bits of `value` */
  write(value: number, count: number): this {
    for (let index = 0; index < count; index += 1) {
      const shift = this.#order === 'high first' ? count - 1 - index : index;
      const bit = (value >>> shift) & 1;
      if (this.#used === 0) this.#bytes.push(0);
      const place = this.#order === 'high first' ? 7 - this.#used : this.#used;
      this.#bytes[this.#bytes.length - 1] = (this.#bytes.at(-1) ?? 0) | (bit << place);
      this.#used = (this.#used + 1) % 8;
    }
    return this;
  }

  /** What has been written, the last byte filled up with zeros. */
  toBuffer(): Buffer {
    return Buffer.from(this.#bytes);
  }
}
