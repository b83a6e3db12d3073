import { type ErrorCode, MediaError } from '../../contract/errors.ts';
import { ExpiringMap } from '../expiring-map.ts';
import { type Clock, WorkerLost } from '../ports.ts';

/** Refusals that another attempt would only repeat, and that cost something to find out. */
const REMEMBERED: ReadonlySet<ErrorCode> = new Set([
  'UNSUPPORTED_MEDIA_TYPE',
  'MEDIA_TOO_LARGE',
  'UNPROCESSABLE_MEDIA',
  'TRANSFORM_TIMEOUT',
]);

/** Time may have run out because the machine was busy: remembered for this long, in milliseconds. */
const TIMEOUT_MEMORY_MS = 60_000;

/**
 * How many workers one original may cost, in however many sizes, before it is left alone; those that
 * are at work with it at that moment come on top.
 */
const MAX_LOST_WORKERS = 3;

/** How long an original is held responsible for the last worker it cost, in milliseconds. */
const LOSS_MEMORY_MS = 10 * 60_000;

/** How many requests, and how many originals, are remembered: some 300 bytes each. */
const MAX_ENTRIES = 10_000;

/**
 * Remembers what was refused for a while, so that a storm of retries reads no original twice and does
 * not kill one worker after another; and which originals are slower than their header tells.
 */
export class NegativeCache {
  /** Codes alone: an error keeps its stack, and its cause, some kilobytes. */
  readonly #refusals: ExpiringMap<ErrorCode>;
  readonly #lostWorkers: ExpiringMap<number>;
  readonly #slowOriginals: ExpiringMap<true>;
  readonly #refusedForMs: number;

  /** @param refusedForMs as long as HTTP caches may keep a 415 or 422, in milliseconds */
  constructor(refusedForMs: number, clock: Clock) {
    this.#refusals = new ExpiringMap(MAX_ENTRIES, clock);
    this.#lostWorkers = new ExpiringMap(MAX_ENTRIES, clock);
    this.#slowOriginals = new ExpiringMap(MAX_ENTRIES, clock);
    this.#refusedForMs = refusedForMs;
  }

  /** The refusal of this very request, if there was one lately. */
  find(key: string): MediaError | undefined {
    const code = this.#refusals.get(key);
    return code && new MediaError(code, { cause: new Error('It was refused for this lately.') });
  }

  /** @throws MediaError `UNPROCESSABLE_MEDIA` if the original has cost too many workers lately */
  checkOriginal(originKey: string): void {
    const lost = this.#lostWorkers.get(originKey) ?? 0;
    if (lost < MAX_LOST_WORKERS) return;
    const cause = new Error(`The original has cost ${lost} workers.`);
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }

  /** Whether a light render of the original has turned out to be none lately. */
  isSlow(originKey: string): boolean {
    return this.#slowOriginals.get(originKey) ?? false;
  }

  /** Takes note that a light render of the original has turned out to be none. */
  noteSlow(originKey: string): void {
    this.#slowOriginals.set(originKey, true, TIMEOUT_MEMORY_MS);
  }

  /** Forgets requests and originals that fit: they are judged anew. */
  forget(fitsKey: (key: string) => boolean, fitsOriginal: (originKey: string) => boolean): void {
    this.#refusals.deleteWhere(fitsKey);
    this.#lostWorkers.deleteWhere(fitsOriginal);
    this.#slowOriginals.deleteWhere(fitsOriginal);
  }

  /**
   * Takes note of why a request failed, if that is worth remembering.
   *
   * @param key of the request
   * @param originKey of its original
   */
  note(key: string, originKey: string, error: unknown): void {
    if (!(error instanceof MediaError) || !REMEMBERED.has(error.code)) return;
    const forMs = error.code === 'TRANSFORM_TIMEOUT' ? TIMEOUT_MEMORY_MS : this.#refusedForMs;
    this.#refusals.set(key, error.code, forMs);
    if (!(error.cause instanceof WorkerLost)) return;
    const lost = (this.#lostWorkers.get(originKey) ?? 0) + 1;
    this.#lostWorkers.set(originKey, lost, LOSS_MEMORY_MS);
  }
}
