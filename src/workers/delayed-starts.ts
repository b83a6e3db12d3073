/** Wait after the first start that fails, doubled each time, and the longest, in milliseconds. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** Workers that are about to be started: at once, or later where starts have failed. */
export class DelayedStarts {
  readonly #timers = new Set<NodeJS.Timeout>();
  #failures = 0;

  /** How many there are. */
  get size(): number {
    return this.#timers.size;
  }

  /** A worker is ready. */
  noteReady(): void {
    this.#failures = 0;
  }

  /**
   * A worker has ended before it was ready.
   *
   * @returns how long to wait before the next start, in milliseconds
   */
  noteFailure(): number {
    this.#failures += 1;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), MAX_DELAY_MS);
  }

  /** Has one be started, in so many milliseconds. */
  schedule(start: () => void, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      start();
    }, delayMs);
    this.#timers.add(timer);
  }

  /** Has none of them be started any more. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
