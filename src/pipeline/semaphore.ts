import { WaitQueue, type WaitQueueLimits } from './wait-queue.ts';

/** Bounds of a semaphore. */
export interface SemaphoreLimits extends WaitQueueLimits {
  readonly slots: number;
}

const WAITING = { item: undefined, bottleneck: 'origin', retryAfterSeconds: () => 1 } as const;

/** Bounds how much is done at once of what takes no CPU: reads from the origin, or from a store. */
export class Semaphore {
  readonly #queue: WaitQueue<undefined, undefined>;
  readonly #slots: number;
  #free: number;

  constructor(limits: SemaphoreLimits) {
    this.#queue = new WaitQueue(limits);
    this.#slots = limits.slots;
    this.#free = limits.slots;
  }

  get inside(): number {
    return this.#slots - this.#free;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /**
   * @returns gives the slot back; a second call does nothing
   * @throws MediaError `OVERLOADED` if the queue is full or the wait too long; or `signal.reason`
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#queue.join({ ...WAITING, signal });
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      if (!this.#queue.admitNext(undefined)) this.#free += 1;
    };
  }
}
