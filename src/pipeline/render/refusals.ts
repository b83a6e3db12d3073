import { LRUCache } from 'lru-cache';
import { type ErrorCode, isFaultOfOriginal, MediaError } from '../../contract/errors.ts';
import { deleteWhere } from '../memory-cache.ts';
import { type Clock, WorkerLost } from '../ports.ts';

/** Crashes after which all renders of an original are refused; running renders may add to them. */
const MAX_CRASHES = 3;

/** Period after the last crash, and after a render that passed the deadline, in milliseconds (contract §5). */
const QUARANTINE_MS = 10 * 60_000;

/** Maximum period for which a request is refused before its original is read again, in milliseconds. */
const TIMEOUT_FOR_MS = 60_000;

/** Period for which a 415 or 422 is remembered, in milliseconds: the work would be repeated, whatever HTTP caches store. */
const REFUSED_FOR_MS = 5 * 60_000;

/** Maximum number of remembered refusals, some 300 bytes each, and of originals with faults. */
const MAX_REFUSALS = 10_000;

/** Refusal of a request, as the client sees it. Not the error: with its stack and cause, it takes some kilobytes. */
interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly untilMs: number;
}

/** Faults of an original that renders have found. */
interface Faults {
  /** Crashes of workers that rendered the original. */
  readonly quarantine?: { readonly crashes: number; readonly untilMs: number };
  /** Cheapest render that passed the deadline. Costlier ones are refused, too. */
  readonly timeout?: { readonly costMs: number; readonly untilMs: number };
}

/** Refusals of requests, and faults of originals, that another attempt would only repeat. */
export class Refusals {
  readonly #clock: Clock;
  /** By result key. */
  readonly #refusals = new LRUCache<string, Refusal>({ max: MAX_REFUSALS });
  /** By origin key. */
  readonly #faults = new LRUCache<string, Faults>({ max: MAX_REFUSALS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws MediaError with which this request was refused lately */
  throwIfRefused(resultKey: string): void {
    const refusal = this.#refusals.get(resultKey);
    if (refusal === undefined || !this.#isBefore(refusal.untilMs)) return;
    const cause = new Error('The same request failed lately.');
    throw new MediaError(refusal.code, { cause, message: refusal.message });
  }

  /**
   * Remembers a fault of the original, and counts crashes.
   *
   * @param resultKey of the request; omit for work that no request repeats by a key
   */
  noteRefusal(resultKey: string | undefined, originKey: string, error: unknown): void {
    if (!isFaultOfOriginal(error)) return;
    const nowMs = this.#clock.nowMs();
    const isTimeout = error.code === 'TRANSFORM_TIMEOUT';
    if (!isTimeout && error.cause instanceof WorkerLost) {
      const crashes = this.#crashesOf(originKey) + 1;
      this.#update(originKey, { quarantine: { crashes, untilMs: nowMs + QUARANTINE_MS } });
    }
    const untilMs = isTimeout
      ? // No longer than the deadline is remembered.
        Math.min(nowMs + TIMEOUT_FOR_MS, this.#findTimeout(originKey)?.untilMs ?? Infinity)
      : nowMs + REFUSED_FOR_MS;
    // A refusal that ends within this millisecond is not worth an entry.
    if (resultKey === undefined || untilMs - nowMs <= 1) return;
    const { code, message } = error;
    this.#refusals.set(resultKey, { code, message, untilMs });
  }

  /** Remembers that a render passed the deadline, if none that costs less did. */
  noteTimeout(originKey: string, costMs: number): void {
    const last = this.#findTimeout(originKey);
    if (last !== undefined && last.costMs <= costMs) return;
    const untilMs = this.#clock.nowMs() + QUARANTINE_MS;
    this.#update(originKey, { timeout: { costMs, untilMs } });
  }

  /**
   * Checks that neither crashes nor a deadline forbid a render (contract §5).
   *
   * @param costMs estimated cost of the render
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original crashed too many workers lately, `TRANSFORM_TIMEOUT` if
   *   this render, or one that costs no more, passed the deadline lately
   */
  throwIfQuarantined(originKey: string, costMs: number): void {
    const timeout = this.#findTimeout(originKey);
    if (timeout !== undefined && timeout.costMs <= costMs) {
      const cause = new Error('A render that costs no more has passed the deadline lately.');
      throw new MediaError('TRANSFORM_TIMEOUT', { cause });
    }
    const crashes = this.#crashesOf(originKey);
    if (crashes < MAX_CRASHES) return;
    const cause = new Error(`The original has crashed ${crashes} workers.`);
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }

  /** Forgets the faults of an original that was replaced. */
  forget(originKey: string): void {
    this.#faults.delete(originKey);
  }

  /** Forgets the faults of originals, and the refusals of requests, with matching keys. */
  purge(
    matchesOriginal: (originKey: string) => boolean,
    matchesKey: (key: string) => boolean,
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
