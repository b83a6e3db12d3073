import type { Way } from '../ways.ts';

/** An original made to do harm, and what is asked of it. */
export interface Bomb {
  readonly name: string;
  /** Makes its bytes, the same each time. */
  readonly make: () => Buffer | Promise<Buffer>;
  readonly ways: readonly Way[];
  /**
   * How it must end in every way but the passthrough one: refused, before it is rendered or not; served;
   * either of them, but before the deadline; or at the deadline, too.
   */
  readonly end: 'refused unseen' | 'refused' | 'served' | 'in time' | 'any';
}

/** Bombs that are asked for in the same ways and end alike, by their names. */
export function bombs(
  end: Bomb['end'],
  ways: readonly Way[],
  makes: Readonly<Record<string, Bomb['make']>>,
): Bomb[] {
  return Object.entries(makes).map(([name, make]) => ({ name, make, ways, end }));
}

/** A name and a bomb for each of these values. */
export function forEach<Value>(
  values: readonly Value[],
  name: (value: Value) => string,
  make: (value: Value) => Buffer | Promise<Buffer>,
): Record<string, Bomb['make']> {
  return Object.fromEntries(values.map((value) => [name(value), () => make(value)]));
}

export const MEBIBYTE = 2 ** 20;

/** As large as an original may be (contract §6), less 100 KiB. */
export const LARGEST_BYTES = 50 * MEBIBYTE - 100 * 1024;

/** A part again and again, up to a size. */
export function fill(bytes: number, part: Uint8Array): Buffer {
  return Buffer.alloc(bytes - (bytes % part.length), part);
}

/** The same part so many times. */
export function times(count: number, part: Uint8Array): Buffer {
  return fill(count * part.length, part);
}

/** Writes numbers of up to 32 bits one after another, the lowest bit first, as VP8L and GIF have them. */
export class BitWriter {
  readonly #bytes: number[] = [];
  #used = 0;

  write(value: number, count: number): this {
    for (let index = 0; index < count; index += 1, this.#used = (this.#used + 1) % 8) {
      if (this.#used === 0) this.#bytes.push(0);
      const bit = ((value >>> index) & 1) << this.#used;
      this.#bytes.push((this.#bytes.pop() ?? 0) | bit);
    }
    return this;
  }

  /** What has been written, the last byte filled up with zeros. */
  toBuffer(): Buffer {
    return Buffer.from(this.#bytes);
  }
}
