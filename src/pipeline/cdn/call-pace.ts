import type { CdnRow } from '../../contract/cdn-tags.ts';
import type { Clock } from '../ports.ts';

/** Waits after consecutive failures, in milliseconds: doubled each time, with jitter. */
const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;

const MAX_RETRY_AFTER_MS = 3_600_000;

/** Pace of API calls: a token bucket, full at first, and a back-off after failures. */
export class CallPace {
  readonly #limit: CdnRow['pace'];
  readonly #clock: Clock;
  #fullAtMs = 0;
  #failures = 0;
  #notBeforeMs = 0;

  constructor(limit: CdnRow['pace'], clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Time until the next call may begin, in milliseconds; may be negative. */
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

  fail(retryAfterMs: number | undefined): void {
    const backOffMs = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** this.#failures);
    // 2^6 seconds exceed the maximum.
    this.#failures = Math.min(this.#failures + 1, 6);
    const waitMs =
      retryAfterMs === undefined
        ? backOffMs * (0.5 + Math.random() / 2)
        : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    this.#notBeforeMs = this.#clock.nowMs() + waitMs;
  }
}
