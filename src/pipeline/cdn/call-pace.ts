import type { CdnRow } from '../../contract/cdn-tags.ts';
import type { Clock } from '../ports.ts';

/** Waits after failures in a row, in milliseconds: doubled each time, and half of it at least. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

const LONGEST_ASKED_WAIT_MS = 3_600_000;

/** Pace of the calls of an API: a token bucket, full at first, and a back-off after failures. */
export class CallPace {
  readonly #limit: CdnRow['pace'];
  readonly #clock: Clock;
  /** Time at which the bucket is full again, in milliseconds of the clock. */
  #fullAtMs = 0;
  #failures = 0;
  #notBeforeMs = 0;

  constructor(limit: CdnRow['pace'], clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Time until the next call may begin, in milliseconds; 0 or less: it may begin now. */
  get waitMs(): number {
    const { burst, intervalMs } = this.#limit;
    const tokenAtMs = this.#fullAtMs - (burst - 1) * intervalMs;
    return Math.max(this.#notBeforeMs, tokenAtMs) - this.#clock.nowMs();
  }

  begin(): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, this.#clock.nowMs()) + this.#limit.intervalMs;
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
