import { MediaError } from '../../contract/errors.ts';
import type { Lane } from '../ports.ts';

/** Memory of an original, until it is released. */
export interface Reservation {
  /** Counts the original among those of heavy renders, if that is the lane. */
  readonly countAgainst: (lane: Lane) => void;
  /** Reserves more memory for an original that is larger than declared. */
  readonly grow: (toBytes: number) => void;
  /** Frees the memory; a second call does nothing. */
  readonly release: () => void;
}

/**
 * Originals up to this size, in bytes, are always admitted: their number is bounded by the reads from the origin and by
 * the queues for a CPU slot.
 */
const SMALL_BYTES = 1024 * 1024;

/** Fraction of the budget for originals of heavy renders, which take long. */
const HEAVY_FRACTION = 1 / 2;

/** `Retry-After` of a refusal, in seconds: memory is released as fast as renders end. */
const RETRY_AFTER_SECONDS = 1;

/**
 * Bounds the bytes of originals that are read, wait for a slot, or are rendered. No request waits for memory, since a
 * waiting request would occupy some itself.
 */
export class MemoryBudget {
  readonly maxBytes: number;
  #heldBytes = 0;
  #heavyBytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @throws MediaError `OVERLOADED` if there is no room, here, in `countAgainst` and in `grow` */
  reserve(firstBytes: number): Reservation {
    let sizeBytes = 0;
    let heavyBytes = 0;
    let isReserved = true;
    const grow = (toBytes: number): void => {
      if (!isReserved || toBytes <= sizeBytes) return;
      this.#check(toBytes, this.#heldBytes - sizeBytes, this.maxBytes);
      this.#heldBytes += toBytes - sizeBytes;
      sizeBytes = toBytes;
    };
    grow(firstBytes);
    return {
      grow,
      countAgainst: (lane) => {
        // An original counts once, however many renders share it.
        if (!isReserved || lane === 'light' || heavyBytes > 0) return;
        this.#check(sizeBytes, this.#heavyBytes, this.maxBytes * HEAVY_FRACTION);
        heavyBytes = sizeBytes;
        this.#heavyBytes += heavyBytes;
      },
      release: () => {
        if (!isReserved) return;
        isReserved = false;
        this.#heldBytes -= sizeBytes;
        this.#heavyBytes -= heavyBytes;
      },
    };
  }

  #check(sizeBytes: number, heldBytes: number, maxBytes: number): void {
    if (sizeBytes <= SMALL_BYTES || heldBytes + sizeBytes <= maxBytes) return;
    // Any budget admits the largest original.
    if (heldBytes < maxBytes / 2 && sizeBytes > maxBytes / 2) return;
    const cause = new Error(
      `Originals of ${heldBytes} bytes are in memory, of ${maxBytes} at most.`,
    );
    throw new MediaError('OVERLOADED', {
      cause,
      bottleneck: 'memory',
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
}
