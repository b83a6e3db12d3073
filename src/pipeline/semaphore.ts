import { type Bottleneck, MediaError } from '../contract/errors.ts';

export interface SemaphoreLimits {
  readonly slots: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

interface WaitOptions {
  readonly bottleneck?: Bottleneck;
  /** Returns after how many seconds a retry is worth it. */
  readonly retryAfterSeconds?: () => number;
}

/** Bounds how much is done at once: a number of slots, and a bounded queue that gets them first come, first served. */
export class Semaphore {
  readonly #limits: SemaphoreLimits;
  /** Each takes over the slot of one that leaves. */
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether an entry would have to wait. */
  get isTaken(): boolean {
    return this.#inside >= this.#limits.slots;
  }

  /** Whether an entry would neither get a slot nor a place in the queue. */
  get isFull(): boolean {
    return this.isTaken && this.#waiting.size >= this.#limits.maxWaiting;
  }

  /**
   * Waits for a slot.
   *
   * @returns gives the slot back; a second call does nothing
   * @throws MediaError `OVERLOADED` if the queue is full or the wait too long; or `signal.reason`
   */
  async enter(signal: AbortSignal, options: WaitOptions = {}): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isTaken) await this.#wait(signal, options);
    else this.#inside += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      const [next] = this.#waiting;
      if (next === undefined) this.#inside -= 1;
      else next();
    };
  }

  #wait(
    signal: AbortSignal,
    { bottleneck = 'origin', retryAfterSeconds = () => 1 }: WaitOptions,
  ): Promise<void> {
    const overloaded = (): MediaError =>
      new MediaError('OVERLOADED', { bottleneck, retryAfterSeconds: retryAfterSeconds() });
    if (this.isFull) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandon);
        this.#waiting.delete(admit);
      };
      const admit = (): void => {
        stop();
        resolve();
      };
      const abandon = (): void => {
        stop();
        reject(signal.reason);
      };
      const giveUp = (): void => {
        stop();
        reject(overloaded());
      };
      const timer = setTimeout(giveUp, this.#limits.maxWaitMs);
      signal.addEventListener('abort', abandon, { once: true });
      this.#waiting.add(admit);
    });
  }
}
