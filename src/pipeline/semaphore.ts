import { WaitQueue, type WaitQueueLimits } from './wait-queue.ts';

/** Bounds of a gate. */
export interface SemaphoreLimits extends WaitQueueLimits {
  /** How many may be inside at once. */
  readonly slots: number;
}

const JOINING = { item: undefined, bottleneck: 'origin', retryAfterSeconds: () => 1 } as const;

/** Bounds how many do something at once that takes no CPU: reading from the origin, or from a store. */
export class Semaphore {
  readonly #line: WaitQueue<undefined, undefined>;
  readonly #slots: number;
  #free: number;

  constructor(limits: SemaphoreLimits) {
    this.#line = new WaitQueue(limits);
    this.#slots = limits.slots;
    this.#free = limits.slots;
  }

  /** How many are inside. */
  get inside(): number {
    return this.#slots - this.#free;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.length;
  }

  /**
   * Waits for a slot.
   *
   * @returns gives the slot back; a second call does nothing
   * @throws MediaError `OVERLOADED` if the line is full or the wait too long; or `signal.reason`
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#line.join({ ...JOINING, signal });
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      if (!this.#line.admitNext(undefined)) this.#free += 1;
    };
  }
}
