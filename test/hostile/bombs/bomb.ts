import type { MakeTarget } from '../targets.ts';

/** A hostile original with its requests. */
export interface Bomb {
  readonly name: string;
  /** Creates the bytes, deterministically. */
  readonly make: () => Buffer | Promise<Buffer>;
  readonly targets: readonly MakeTarget[];
  /** Permitted outcomes of all requests except passthrough. */
  readonly end: 'refused without a render' | 'refused' | 'served' | 'in time' | 'any';
}

/** Bombs with the same requests and outcome, by name. */
export function bombs(
  end: Bomb['end'],
  targets: readonly MakeTarget[],
  makes: Readonly<Record<string, Bomb['make']>>,
): Bomb[] {
  return Object.entries(makes).map(([name, make]) => ({ name, make, targets, end }));
}

/** Creates a named bomb for each value. */
export function forEach<Value>(
  values: readonly Value[],
  name: (value: Value) => string,
  make: (value: Value) => Buffer | Promise<Buffer>,
): Record<string, Bomb['make']> {
  return Object.fromEntries(values.map((value) => [name(value), () => make(value)]));
}

export const MEBIBYTE = 2 ** 20;

/** Maximum size of an original (contract §6) minus 100 KiB. */
export const LARGEST_BYTES = 50 * MEBIBYTE - 100 * 1024;

/** Repeats a part up to a size. */
export function fill(bytes: number, part: Uint8Array): Buffer {
  return Buffer.alloc(bytes - (bytes % part.length), part);
}

export function times(count: number, part: Uint8Array): Buffer {
  return fill(count * part.length, part);
}

/** Writes numbers of up to 32 bits, lowest bit first, as in VP8L and GIF. */
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

  /** Returns the written bytes; zeros pad the last one. */
  toBuffer(): Buffer {
    return Buffer.from(this.#bytes);
  }
}
