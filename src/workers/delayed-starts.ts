/** Back-off after the first failed start, doubled each time, and its maximum, in milliseconds. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** Scheduled starts of workers: at once, or with back-off after failures. */
export class DelayedStarts {
  readonly #timers = new Set<NodeJS.Timeout>();
  #failures = 0;

  /** Number of scheduled starts. */
  get size(): number {
    return this.#timers.size;
  }

  /** Notes that a worker became ready, which resets the back-off. */
  noteReady(): void {
    this.#failures = 0;
  }

  /**
   * Notes that a worker has ended before it was ready.
   *
   * @returns the delay before the next start, in milliseconds
   */
  noteFailure(): number {
    this.#failures += 1;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), MAX_DELAY_MS);
  }

  /** Schedules a start after a delay. */
  schedule(start: () => void, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      start();
    }, delayMs);
    this.#timers.add(timer);
  }

  /** Cancels all scheduled starts. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
