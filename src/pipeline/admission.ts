import { MediaError } from '../media/errors.ts';
import type { Clock } from './ports.ts';

interface Waiting {
  readonly admit: () => void;
}

/** Bounds of the waiting room (spec §6). */
export interface AdmissionLimits {
  /** How many may work at once. */
  readonly slots: number;
  /** How many may wait. */
  readonly maxWaiting: number;
  /** How long one may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** CPU slots, and a bounded queue before them: first come, first served. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #queue = new Set<Waiting>();
  #free: number;
  /** Moving average of how long a slot is held; for an honest `Retry-After`. */
  #averageHoldMs = 0;

  constructor(limits: AdmissionLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#free = limits.slots;
  }

  /**
   * Waits for a slot.
   *
   * @returns gives the slot back; to be called once
   * @throws MediaError `OVERLOADED` if the queue is full or the wait too long; or `signal.reason`
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      await this.#wait(signal);
    }
    const enteredMs = this.#clock.nowMs();
    return () => {
      const heldMs = this.#clock.nowMs() - enteredMs;
      this.#averageHoldMs += (heldMs - this.#averageHoldMs) / 8;
      this.#leave();
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#queue.size >= this.#limits.maxWaiting) return Promise.reject(this.#overloaded());
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandon);
        this.#queue.delete(waiting);
        settle();
      };
      const abandon = finish(() => reject(signal.reason));
      const waiting = { admit: finish(resolve) };
      const timer = setTimeout(
        finish(() => reject(this.#overloaded())),
        this.#limits.maxWaitMs,
      );
      signal.addEventListener('abort', abandon, { once: true });
      this.#queue.add(waiting);
    });
  }

  #leave(): void {
    const [next] = this.#queue;
    if (next === undefined) this.#free += 1;
    else next.admit();
  }

  #overloaded(): MediaError {
    const aheadMs = (this.#averageHoldMs * (this.#queue.size + 1)) / this.#limits.slots;
    return new MediaError('OVERLOADED', {
      retryAfterSeconds: Math.max(1, Math.ceil(aheadMs / 1000)),
    });
  }
}
