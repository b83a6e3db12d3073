import { type WaitingLimits, WaitingLine } from './waiting-line.ts';

/** Bounds of a gate. */
export interface GateLimits extends WaitingLimits {
  /** How many may be inside at once. */
  readonly slots: number;
}

/** Bounds how many do something at once that takes no CPU, such as reading from the origin. */
export class Gate {
  readonly #line: WaitingLine<undefined, undefined>;
  #free: number;

  constructor(limits: GateLimits) {
    this.#line = new WaitingLine(limits);
    this.#free = limits.slots;
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
    else await this.#line.join({ item: undefined, signal, retryAfterSeconds: () => 1 });
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      if (!this.#line.admitNext(undefined)) this.#free += 1;
    };
  }
}
