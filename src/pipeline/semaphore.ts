import { type Bottleneck, MediaError } from '../contract/errors.ts';

export interface SemaphoreLimits {
  readonly slots: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

/** Semaphore with a bounded FIFO queue. */
export class Semaphore {
  readonly #limits: SemaphoreLimits;
  readonly #bottleneck: Bottleneck;
  /** Called to pass on the slot of an entry that leaves. */
  readonly #waiting = new Set<() => void>();
  #inUse = 0;

  /** @param bottleneck named by the errors */
  constructor(limits: SemaphoreLimits, bottleneck: Bottleneck = 'origin') {
    this.#limits = limits;
    this.#bottleneck = bottleneck;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether an entry would have to wait. */
  get isExhausted(): boolean {
    return this.#inUse >= this.#limits.slots;
  }

  /** Whether an entry would be rejected. */
  get isFull(): boolean {
    return this.isExhausted && this.#waiting.size >= this.#limits.maxWaiting;
  }

  /**
   * Waits for a slot.
   *
   * @param retryAfterSeconds returns the `Retry-After` of a refusal
   * @returns frees the slot; a second call does nothing
   * @throws MediaError `OVERLOADED` if the queue is full or the wait too long; or `signal.reason`
   */
  async acquire(signal: AbortSignal, retryAfterSeconds = () => 1): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isExhausted) await this.#wait(signal, retryAfterSeconds);
    else this.#inUse += 1;
    let isAcquired = true;
    return () => {
      if (!isAcquired) return;
      isAcquired = false;
      const [next] = this.#waiting;
      if (next === undefined) this.#inUse -= 1;
      else next();
    };
  }

  #wait(signal: AbortSignal, retryAfterSeconds: () => number): Promise<void> {
    const overloaded = (): MediaError =>
      new MediaError('OVERLOADED', {
        bottleneck: this.#bottleneck,
        retryAfterSeconds: retryAfterSeconds(),
      });
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
