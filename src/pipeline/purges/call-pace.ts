import type { EdgeRow } from '../../contract/edge-tags.ts';
import type { Clock } from '../ports.ts';

/** Waits after failures in a row, in milliseconds: doubled each time, and half of it at least. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

const LONGEST_ASKED_WAIT_MS = 3_600_000;

/** Pace of the calls of an API: at most so many in any period, and a back-off after failures. */
export class CallPace {
  readonly #limit: EdgeRow['pace'];
  readonly #clock: Clock;
  /** Times of the last calls, as many as a period may have. */
  readonly #calls: number[] = [];
  #failures = 0;
  #notBeforeMs = 0;

  constructor(limit: EdgeRow['pace'], clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Time until the next call may begin, in milliseconds; 0 or less: it may begin now. */
  get waitMs(): number {
    const nowMs = this.#clock.nowMs();
    const [oldest = nowMs] = this.#calls;
    const isPaced = this.#calls.length === this.#limit.calls;
    return Math.max(this.#notBeforeMs - nowMs, isPaced ? oldest + this.#limit.perMs - nowMs : 0);
  }

  begin(): void {
    this.#calls.push(this.#clock.nowMs());
    if (this.#calls.length > this.#limit.calls) this.#calls.shift();
  }

  succeed(): void {
    this.#failures = 0;
  }

  /** @param askedMs wait that the API asks for, in milliseconds */
  fail(askedMs: number | undefined): void {
    const backOffMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    // 2^6 seconds are longer than the longest wait.
    this.#failures = Math.min(this.#failures + 1, 6);
    const waitMs =
      askedMs === undefined
        ? backOffMs * (0.5 + Math.random() / 2)
        : Math.min(askedMs, LONGEST_ASKED_WAIT_MS);
    this.#notBeforeMs = this.#clock.nowMs() + waitMs;
  }
}
