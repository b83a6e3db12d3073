import { MediaError } from '../../contract/errors.ts';
import type { Lane } from '../ports.ts';

/** Memory that an original holds until it is let go. */
export interface Reservation {
  /** Counts it among those that wait for, or are in, a heavy render; or not. */
  readonly assign: (lane: Lane) => void;
  /** Gives the memory back; a second call does nothing. */
  readonly release: () => void;
}

/**
 * Originals up to this size are let in whatever others hold: how many there can be is bounded by the
 * reads from the origin and by the lines before the renderer. In bytes.
 */
const SMALL_BYTES = 1024 * 1024;

/** How much of the budget may wait for heavy renders, which take their time. */
const HEAVY_SHARE = 1 / 2;

/** `Retry-After` of a refusal, in seconds: memory comes back as fast as renders end. */
const RETRY_AFTER_SECONDS = 1;

/**
 * Bounds the bytes of originals that are held in memory at once: while they are read, while they wait
 * for a slot, while they are rendered. Nobody waits for memory, since whoever waits holds some himself.
 */
export class MemoryBudget {
  readonly #maxBytes: number;
  #heldBytes = 0;
  #heavyBytes = 0;

  /** @param maxBytes at least twice the largest original, so that one alone always finds room */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @throws MediaError `OVERLOADED` if there is no room, here and in `assign` */
  reserve(sizeBytes: number): Reservation {
    this.#check(sizeBytes, this.#heldBytes, this.#maxBytes);
    this.#heldBytes += sizeBytes;
    let heavyBytes = 0;
    let isHeld = true;
    return {
      assign: (lane) => {
        // Whoever shares it counts it once; what is released counts no more.
        if (!isHeld || lane === 'light' || heavyBytes > 0) return;
        this.#check(sizeBytes, this.#heavyBytes, this.#maxBytes * HEAVY_SHARE);
        heavyBytes = sizeBytes;
        this.#heavyBytes += heavyBytes;
      },
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#heldBytes -= sizeBytes;
        this.#heavyBytes -= heavyBytes;
      },
    };
  }

  #check(sizeBytes: number, heldBytes: number, maxBytes: number): void {
    if (sizeBytes <= SMALL_BYTES || heldBytes + sizeBytes <= maxBytes) return;
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
