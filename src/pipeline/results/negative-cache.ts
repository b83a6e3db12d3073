import { LRUCache } from 'lru-cache';
import { type ErrorCode, MediaError } from '../../contract/errors.ts';
import { deleteWhere } from '../memory-cache.ts';
import { type Clock, WorkerLost } from '../ports.ts';

/** Errors that another attempt would only repeat, and that cost something to find out. */
const CACHED_CODES: ReadonlySet<ErrorCode> = new Set([
  'UNSUPPORTED_MEDIA_TYPE',
  'MEDIA_TOO_LARGE',
  'UNPROCESSABLE_MEDIA',
  'TRANSFORM_TIMEOUT',
]);

/** Time may have run out because the machine was busy: cached for this long, in milliseconds. */
const TIMEOUT_TTL_MS = 60_000;

/**
 * How many workers one original may cost, in however many sizes, before it is no longer rendered; those
 * that are rendering it at that moment come on top.
 */
const MAX_LOST_WORKERS = 3;

/** How long an original is held responsible for the last worker it cost, and for a deadline, in milliseconds. */
const ORIGINAL_TTL_MS = 10 * 60_000;

/** How many requests, and how many originals, are known: some 300 bytes each. */
const MAX_ENTRIES = 10_000;

/**
 * The errors of requests, kept for a while, so that a storm of retries reads no original twice and does
 * not kill one worker after another; and the originals that take longer than their header suggests.
 */
export class NegativeCache {
  /** Codes alone: an error keeps its stack, and its cause, some kilobytes. */
  readonly #codes: LRUCache<string, ErrorCode>;
  readonly #lostWorkers: LRUCache<string, number>;
  /** Originals of which a render has passed the deadline. */
  readonly #timedOut: LRUCache<string, true>;
  readonly #slowOriginals: LRUCache<string, true>;
  readonly #ttlMs: number;

  /** @param ttlMs as long as HTTP caches may keep a 415 or 422, in milliseconds; 0 keeps none */
  constructor(ttlMs: number, clock: Clock) {
    const options = {
      max: MAX_ENTRIES,
      // Asked each time; and never 0, which would stand for an entry without an end.
      ttlResolution: 0,
      perf: { now: () => clock.nowMs() + 1 },
    };
    this.#codes = new LRUCache(options);
    this.#lostWorkers = new LRUCache(options);
    this.#timedOut = new LRUCache(options);
    this.#slowOriginals = new LRUCache(options);
    this.#ttlMs = ttlMs;
  }

  /** The error of this very request, if it failed lately. */
  find(key: string): MediaError | undefined {
    const code = this.#codes.get(key);
    return code && new MediaError(code, { cause: new Error('The same request failed lately.') });
  }

  /** Keeps the error of a request, if another attempt would only repeat it. */
  note(key: string, originKey: string, error: unknown): void {
    if (!(error instanceof MediaError) || !CACHED_CODES.has(error.code)) return;
    const isTimeout = error.code === 'TRANSFORM_TIMEOUT';
    if (error.cause instanceof WorkerLost) {
      const ttl = forMs(ORIGINAL_TTL_MS);
      if (isTimeout) this.#timedOut.set(originKey, true, ttl);
      else this.#lostWorkers.set(originKey, this.#lostWorkersOf(originKey) + 1, ttl);
    }
    const ttlMs = isTimeout ? this.#timeoutTtlMs(originKey) : this.#ttlMs;
    if (ttlMs > 1) this.#codes.set(key, error.code, forMs(ttlMs));
  }

  /**
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original has cost too many workers lately,
   *   `TRANSFORM_TIMEOUT` if a render of it, in whatever size, has passed the deadline (contract §5)
   */
  checkOriginal(originKey: string): void {
    if (this.#timedOut.has(originKey)) {
      const cause = new Error('A render of the original has passed the deadline lately.');
      throw new MediaError('TRANSFORM_TIMEOUT', { cause });
    }
    const lost = this.#lostWorkersOf(originKey);
    if (lost < MAX_LOST_WORKERS) return;
    const cause = new Error(`The original has cost ${lost} workers.`);
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }

  #lostWorkersOf(originKey: string): number {
    return this.#lostWorkers.get(originKey) ?? 0;
  }

  /** No longer than the original is left alone. */
  #timeoutTtlMs(originKey: string): number {
    if (!this.#timedOut.has(originKey)) return TIMEOUT_TTL_MS;
    return Math.min(TIMEOUT_TTL_MS, this.#timedOut.getRemainingTTL(originKey) + 1);
  }

  /** Whether a light render of the original has taken too long for its lane lately. */
  isSlow(originKey: string): boolean {
    return this.#slowOriginals.has(originKey);
  }

  /** A light render of the original has taken too long for its lane. */
  noteSlow(originKey: string): void {
    this.#slowOriginals.set(originKey, true, forMs(TIMEOUT_TTL_MS));
  }

  purge(fitsKey: (key: string) => boolean, fitsOriginal: (originKey: string) => boolean): void {
    deleteWhere(this.#codes, fitsKey);
    deleteWhere(this.#lostWorkers, fitsOriginal);
    deleteWhere(this.#timedOut, fitsOriginal);
    deleteWhere(this.#slowOriginals, fitsOriginal);
  }
}

/** The end of an entry, after more than 0 ms: `lru-cache` keeps it for a whole millisecond beyond its time. */
function forMs(ttlMs: number): { readonly ttl: number } {
  return { ttl: ttlMs - 1 };
}
