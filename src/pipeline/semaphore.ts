import { type Bottleneck, MediaError } from '../contract/errors.ts';

export interface SemaphoreLimits {
  readonly slots: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

export class Semaphore {
  readonly #limits: SemaphoreLimits;
  readonly #bottleneck: Bottleneck;
  /** Functions that admit waiting callers. */
  readonly #waiting = new Set<() => void>();
  #inUse = 0;

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

  /** Whether `acquire` would wait. */
  get isExhausted(): boolean {
    return this.#inUse >= this.#limits.slots;
  }

  /** Whether `acquire` would reject. */
  get isFull(): boolean {
    return this.isExhausted && this.#waiting.size >= this.#limits.maxWaiting;
  }

  /**
   * Waits for a slot; returns a function that frees it, once.
   *
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
