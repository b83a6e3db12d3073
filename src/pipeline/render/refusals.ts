import { LRUCache } from 'lru-cache';
import { type ErrorCode, isFaultOfOriginal, MediaError } from '../../contract/errors.ts';
import { deleteWhere } from '../memory-cache.ts';
import { type Clock, WorkerLost } from '../ports.ts';

/** Crashes after which all renders of an original are rejected; running renders may add more. */
const MAX_CRASHES = 3;

/** Period after the last crash, or a render that exceeded the deadline, in milliseconds (contract §5). */
const QUARANTINE_MS = 10 * 60_000;

/** Maximum period in which a request is rejected without reading its original again, in milliseconds. */
const TIMEOUT_FOR_MS = 60_000;

/** Period for which a 415 or 422 is remembered, in milliseconds, regardless of HTTP caches. */
const REFUSED_FOR_MS = 5 * 60_000;

/** Maximum number of refusals (about 300 bytes each), and of quarantined originals. */
const MAX_REFUSALS = 10_000;

/** Refusal of a request. An error with its stack and cause would take kilobytes. */
interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly untilMs: number;
}

/** Failures of renders of one original. */
interface Faults {
  readonly quarantine?: { readonly crashes: number; readonly untilMs: number };
  /** Cheapest render that exceeded the deadline; costlier ones are rejected, too. */
  readonly timeout?: { readonly costMs: number; readonly untilMs: number };
}

/** Failures that another attempt would only repeat: refusals of requests, and quarantines of originals. */
export class Refusals {
  readonly #clock: Clock;
  readonly #refusals = new LRUCache<string, Refusal>({ max: MAX_REFUSALS });
  readonly #faults = new LRUCache<string, Faults>({ max: MAX_REFUSALS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws MediaError with which this request was rejected recently */
  throwIfRefused(cacheKey: string): void {
    const refusal = this.#refusals.get(cacheKey);
    if (refusal === undefined || !this.#isBefore(refusal.untilMs)) return;
    const cause = new Error('The same request failed recently.');
    throw new MediaError(refusal.code, { cause, message: refusal.message });
  }

  /** Remembers a failure that the original caused, and counts crashes. Omit `cacheKey` for work without a result. */
  noteRefusal(cacheKey: string | undefined, originKey: string, error: unknown): void {
    if (!isFaultOfOriginal(error)) return;
    const nowMs = this.#clock.nowMs();
    const isTimeout = error.code === 'TRANSFORM_TIMEOUT';
    if (!isTimeout && error.cause instanceof WorkerLost) {
      const crashes = this.#crashesOf(originKey) + 1;
      this.#update(originKey, { quarantine: { crashes, untilMs: nowMs + QUARANTINE_MS } });
    }
    const untilMs = isTimeout
      ? // At most as long as the exceeded deadline is remembered.
        Math.min(nowMs + TIMEOUT_FOR_MS, this.#findTimeout(originKey)?.untilMs ?? Infinity)
      : nowMs + REFUSED_FOR_MS;
    // A refusal that ends within this millisecond needs no entry.
    if (cacheKey === undefined || untilMs - nowMs <= 1) return;
    const { code, message } = error;
    this.#refusals.set(cacheKey, { code, message, untilMs });
  }

  /** Remembers an exceeded deadline, unless a cheaper render exceeded it before. */
  noteTimeout(originKey: string, costMs: number): void {
    const last = this.#findTimeout(originKey);
    if (last !== undefined && last.costMs <= costMs) return;
    const untilMs = this.#clock.nowMs() + QUARANTINE_MS;
    this.#update(originKey, { timeout: { costMs, untilMs } });
  }

  /**
   * Checks a render against earlier crashes and deadlines (contract §5).
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original crashed too many workers recently, `TRANSFORM_TIMEOUT` if a
   *   render at this cost or less exceeded the deadline recently
   */
  throwIfQuarantined(originKey: string, costMs: number): void {
    const timeout = this.#findTimeout(originKey);
    if (timeout !== undefined && timeout.costMs <= costMs) {
      const cause = new Error('A render at this cost or less exceeded the deadline recently.');
      throw new MediaError('TRANSFORM_TIMEOUT', { cause });
    }
    const crashes = this.#crashesOf(originKey);
    if (crashes < MAX_CRASHES) return;
    const cause = new Error(`The original crashed ${crashes} workers.`);
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }

  forget(originKey: string): void {
    this.#faults.delete(originKey);
  }

  /** Forgets matching quarantines and refusals. */
  purge(
    matchesOriginal: (originKey: string) => boolean,
    matchesKey: (cacheKey: string) => boolean,
  ): void {
    deleteWhere(this.#faults, matchesOriginal);
    deleteWhere(this.#refusals, matchesKey);
  }

  #crashesOf(originKey: string): number {
    const quarantine = this.#faults.get(originKey)?.quarantine;
    return quarantine && this.#isBefore(quarantine.untilMs) ? quarantine.crashes : 0;
  }

  #findTimeout(originKey: string): Faults['timeout'] {
    const timeout = this.#faults.get(originKey)?.timeout;
    return timeout && this.#isBefore(timeout.untilMs) ? timeout : undefined;
  }

  #update(originKey: string, change: Partial<Faults>): void {
    this.#faults.set(originKey, { ...this.#faults.get(originKey), ...change });
  }

  #isBefore(untilMs: number): boolean {
    return this.#clock.nowMs() < untilMs;
  }
}
