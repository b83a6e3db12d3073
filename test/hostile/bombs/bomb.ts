import type { Way } from '../ways.ts';

/** An original made to do harm, and what is asked of it. */
export interface Bomb {
  readonly name: string;
  /** Makes its bytes, the same each time. */
  readonly make: () => Buffer | Promise<Buffer>;
  readonly ways: readonly Way[];
  /**
   * How it must end in every way but the passthrough one: refused, before it is rendered or not; served;
   * either of them, but before the deadline. At the deadline, too, where nothing is said.
   */
  readonly end?: 'refused' | 'refused unseen' | 'served' | 'in time';
}

/** Declares a bomb; its end is given where only one is right. */
export function bomb(
  name: string,
  ways: readonly Way[],
  make: Bomb['make'],
  end?: Bomb['end'],
): Bomb {
  return { name, ways, make, ...(end && { end }) };
}

export const MEBIBYTE = 2 ** 20;

/** As large as an original may be (contract §6), less 100 KiB. */
export const LARGEST_BYTES = 50 * MEBIBYTE - 100 * 1024;

/** A part again and again, up to a size. */
export function repeat(part: Uint8Array, bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % part.length), part);
}
