import { MediaError } from '../../contract/errors.ts';
import type { Lane } from '../ports.ts';

export interface Reservation {
  /** Counts the original against the fraction of heavy renders, if that is the lane. */
  readonly countAgainst: (lane: Lane) => void;
  /** Grows the reservation for an original of unknown length. */
  readonly grow: (toBytes: number) => void;
  /** Frees the memory once. */
  readonly free: () => void;
}

/** Size up to which originals are always admitted, in bytes; reads from the origin and queues limit their number. */
const SMALL_BYTES = 1024 * 1024;

/** Fraction of the budget for heavy renders, which take long. */
const HEAVY_FRACTION = 1 / 2;

/** `Retry-After` in seconds; memory is freed as fast as renders end. */
const RETRY_AFTER_SECONDS = 1;

/**
 * Limits the bytes of originals that are being read, wait for a render, or are rendered. No request waits for memory,
 * since waiting requests occupy memory, too.
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

  /** @throws MediaError `OVERLOADED` without room, also from `countAgainst` and `grow` */
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
        // An original counts once for all renders that share it.
        if (!isReserved || lane === 'light' || heavyBytes > 0) return;
        this.#check(sizeBytes, this.#heavyBytes, this.maxBytes * HEAVY_FRACTION);
        heavyBytes = sizeBytes;
        this.#heavyBytes += heavyBytes;
      },
      free: () => {
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
