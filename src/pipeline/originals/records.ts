import { LRUCache } from 'lru-cache';
import { type ErrorCode, MediaError } from '../../contract/errors.ts';
import { deleteWhere } from '../memory-cache.ts';
import {
  type Clock,
  type Opened,
  type OriginalIdentity,
  type SourceValidators,
  WorkerLost,
} from '../ports.ts';
import { SiteFailure } from '../site-failure.ts';
import type { Backend } from './backend.ts';
import { isOriginFailure } from './open-body.ts';

/** Periods for which the word of a source holds. */
export interface FreshnessLimits {
  /** For an original that is there, in milliseconds. */
  readonly freshForMs: number;
  /** For a missing one, in milliseconds. */
  readonly goneForMs: number;
}

/** First bytes of an original that is passed on in parts, and what they tell. */
export interface Beginning extends Pick<Opened, 'sizeBytes' | 'etag' | 'lastModified'> {
  readonly prefix: Uint8Array;
  readonly contentType: string;
  /** Whether the source gives parts. */
  readonly hasParts: boolean;
  readonly freshForMs: number | undefined;
}

/** Everything that is known of one original. */
interface OriginalRecord {
  /** `undefined`: the original is missing, or the source has never told. */
  readonly identity?: OriginalIdentity | undefined;
  /** When the source told. */
  readonly checkedAtMs: number;
  /** Period for which that holds, where the source tells one. */
  readonly freshForMs?: number | undefined;
  readonly validators?: SourceValidators | undefined;
  /** Failure of the source since then. */
  readonly failure?: { readonly code: ErrorCode; readonly atMs: number };
  /** Workers that renders of it have cost lately. */
  readonly lostWorkers?: { readonly count: number; readonly untilMs: number };
  /** Until when renders of it are refused, since one has passed the deadline. */
  readonly timedOutUntilMs?: number;
  /** Until when its light renders are taken for heavy ones, since one took too long for its lane. */
  readonly slowUntilMs?: number;
  readonly beginning?: { readonly known: Beginning; readonly untilMs: number };
}

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Age up to which a result may be served that a failing source cannot confirm, in milliseconds
 * (RFC 5861 §4, `stale-if-error`), counted from when it ceased to be fresh.
 */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** Workers that one original may cost, in all sizes, before it is no longer rendered; those that render it come on top. */
const MAX_LOST_WORKERS = 3;

/** Period for which an original is blamed for the last worker it cost, and for a deadline, in milliseconds. */
const BLAMED_FOR_MS = 10 * 60_000;

/** Time may have run out because the machine was busy: a timeout is remembered for this long, in milliseconds. */
const TIMEOUT_FOR_MS = 60_000;

/** Bounds of the records, in bytes: some 100 000 originals, fewer where beginnings are remembered. */
const MAX_BYTES = 48 * 1024 * 1024;
const RECORD_BYTES = 480;

/** Requests whose refusals are remembered: some 300 bytes each. */
const MAX_REFUSALS = 10_000;

/** Errors that another attempt would only repeat, and that cost something to find out. */
const REPEATED_CODES: ReadonlySet<ErrorCode> = new Set([
  'UNSUPPORTED_MEDIA_TYPE',
  'MEDIA_TOO_LARGE',
  'UNPROCESSABLE_MEDIA',
  'TRANSFORM_TIMEOUT',
]);

/** Settings of the records. */
export interface RecordOptions extends FreshnessLimits {
  /** As long as HTTP caches may keep a 415 or 422, in milliseconds; 0 remembers none. */
  readonly refusedForMs: number;
}

/**
 * Records of originals: what the source has told, how it has failed, what renders have cost; and refusals of single
 * requests. They answer for all renderings of an original, without asking anybody again.
 */
export class OriginalRecords {
  readonly #options: RecordOptions;
  readonly #clock: Clock;
  readonly #records = new LRUCache<string, OriginalRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ beginning }, key) =>
      RECORD_BYTES + 2 * key.length + (beginning?.known.prefix.length ?? 0),
  });
  /** By result key. Codes alone: an error keeps its stack, and its cause, some kilobytes. */
  readonly #refusals = new LRUCache<string, { readonly code: ErrorCode; readonly untilMs: number }>(
    { max: MAX_REFUSALS },
  );

  constructor(options: RecordOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Returns the identity of an original that the source was asked for recently enough to rely on it. */
  findFresh(originKey: string): OriginalIdentity | undefined {
    const record = this.#records.get(originKey);
    return record && this.#isWithin(this.#freshForMsOf(record), record.checkedAtMs)
      ? record.identity
      : undefined;
  }

  /** Returns the last known state, as long as it may be served while the source fails. */
  findLast(originKey: string): Pick<OriginalRecord, 'identity' | 'validators'> {
    const record = this.#records.get(originKey);
    if (record?.identity === undefined) return {};
    const periodMs = (record.freshForMs ?? 0) + STALE_IF_ERROR_MS;
    return this.#isWithin(periodMs, record.checkedAtMs) ? record : {};
  }

  /** Returns for how long the source says that an original may be kept, in milliseconds, while that holds. */
  findFreshForMs(originKey: string): number | undefined {
    return this.findFresh(originKey) && this.#records.get(originKey)?.freshForMs;
  }

  /** Whether the source has told lately that the original is missing. */
  isMissing(originKey: string): boolean {
    const record = this.#records.get(originKey);
    if (record === undefined || record.identity !== undefined) return false;
    return this.#isWithin(this.#options.goneForMs, record.checkedAtMs);
  }

  /** Returns the failure of the source for an original in the time until now. */
  findFailure(originKey: string, periodMs: number, { isForeign }: Backend): MediaError | undefined {
    const { failure } = this.#records.get(originKey) ?? {};
    if (failure === undefined || !this.#isWithin(periodMs, failure.atMs)) return undefined;
    const message = 'The source failed for the same original lately.';
    const cause = isForeign
      ? new SiteFailure(message, { reason: 'remembered' })
      : new Error(message);
    return new MediaError(failure.code, { cause });
  }

  /** The source has shown the original. */
  noteFound(
    originKey: string,
    identity: OriginalIdentity,
    { freshForMs, validators }: Pick<Opened, 'freshForMs' | 'validators'> = {},
  ): void {
    this.#noteTold(originKey, { identity, freshForMs, validators });
  }

  /** A read has failed: the original is missing, or the source could not tell. Other errors say nothing of it. */
  noteError(originKey: string, error: unknown): void {
    if (!(error instanceof MediaError)) return;
    if (error.code === 'UNKNOWN_MEDIA') this.#noteTold(originKey, { identity: undefined });
    if (!isOriginFailure(error)) return;
    this.#update(originKey, { failure: { code: error.code, atMs: this.#clock.nowMs() } });
  }

  /** Returns the beginning of an original that is passed on in parts, while the source's word holds. */
  findBeginning(originKey: string): Beginning | undefined {
    const { beginning } = this.#records.get(originKey) ?? {};
    return beginning && this.#clock.nowMs() < beginning.untilMs ? beginning.known : undefined;
  }

  noteBeginning(originKey: string, known: Beginning): void {
    const { etag, sizeBytes, hasParts, freshForMs } = known;
    if (etag === undefined || sizeBytes === undefined || !hasParts) return;
    const untilMs = this.#clock.nowMs() + (freshForMs ?? 0);
    this.#update(originKey, { beginning: { known, untilMs } });
  }

  forgetBeginning(originKey: string): void {
    const { beginning, ...record } = this.#records.get(originKey) ?? { checkedAtMs: NEVER_MS };
    this.#records.set(originKey, record);
  }

  /** @throws MediaError that this very request was refused with lately, or `UNKNOWN_MEDIA` */
  throwIfRefused(resultKey: string, originKey: string): void {
    const refusal = this.#refusals.get(resultKey);
    if (refusal !== undefined && this.#clock.nowMs() < refusal.untilMs) {
      throw new MediaError(refusal.code, {
        cause: new Error('The same request failed lately.'),
      });
    }
    if (this.isMissing(originKey)) throw new MediaError('UNKNOWN_MEDIA');
  }

  /** Remembers the error of a request, if another attempt would only repeat it, and what it says of the original. */
  noteRefusal(resultKey: string, originKey: string, error: unknown): void {
    if (!(error instanceof MediaError) || !REPEATED_CODES.has(error.code)) return;
    const nowMs = this.#clock.nowMs();
    const isTimeout = error.code === 'TRANSFORM_TIMEOUT';
    if (error.cause instanceof WorkerLost) {
      const untilMs = nowMs + BLAMED_FOR_MS;
      if (isTimeout) this.#update(originKey, { timedOutUntilMs: untilMs });
      else {
        const count = this.#lostWorkersOf(originKey) + 1;
        this.#update(originKey, { lostWorkers: { count, untilMs } });
      }
    }
    const untilMs = isTimeout
      ? // No longer than the original is blamed.
        Math.min(nowMs + TIMEOUT_FOR_MS, this.#timedOutUntilMs(originKey) ?? Infinity)
      : nowMs + this.#options.refusedForMs;
    // One that ends with this very millisecond is not worth an entry.
    if (untilMs - nowMs > 1) this.#refusals.set(resultKey, { code: error.code, untilMs });
  }

  /**
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the original has cost too many workers lately,
   *   `TRANSFORM_TIMEOUT` if a render of it, in whatever size, has passed the deadline (contract §5)
   */
  throwIfBlamed(originKey: string): void {
    if (this.#timedOutUntilMs(originKey) !== undefined) {
      const cause = new Error('A render of the original has passed the deadline lately.');
      throw new MediaError('TRANSFORM_TIMEOUT', { cause });
    }
    const lost = this.#lostWorkersOf(originKey);
    if (lost < MAX_LOST_WORKERS) return;
    const cause = new Error(`The original has cost ${lost} workers.`);
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
  }

  /** Whether a light render of the original has taken too long for its lane lately. */
  isSlow(originKey: string): boolean {
    return this.#clock.nowMs() < (this.#records.get(originKey)?.slowUntilMs ?? NEVER_MS);
  }

  noteSlow(originKey: string): void {
    this.#update(originKey, { slowUntilMs: this.#clock.nowMs() + TIMEOUT_FOR_MS });
  }

  /**
   * Forgets an original that has come anew.
   *
   * @returns whether it was there before: then results of it may be kept somewhere
   */
  forget(originKey: string): boolean {
    const wasThere = this.#records.get(originKey)?.identity !== undefined;
    this.#records.delete(originKey);
    return wasThere;
  }

  /** Forgets the originals, and the refusals of requests, whose keys fit. */
  purge(fitsOriginal: (originKey: string) => boolean, fitsKey: (key: string) => boolean): void {
    deleteWhere(this.#records, fitsOriginal);
    this.purgeRefusals(fitsKey);
  }

  purgeRefusals(fitsKey: (key: string) => boolean): void {
    deleteWhere(this.#refusals, fitsKey);
  }

  #lostWorkersOf(originKey: string): number {
    const { count, untilMs } = this.#records.get(originKey)?.lostWorkers ?? {
      count: 0,
      untilMs: NEVER_MS,
    };
    return this.#clock.nowMs() < untilMs ? count : 0;
  }

  #timedOutUntilMs(originKey: string): number | undefined {
    const untilMs = this.#records.get(originKey)?.timedOutUntilMs ?? NEVER_MS;
    return this.#clock.nowMs() < untilMs ? untilMs : undefined;
  }

  /** Takes the source's word, which ends a failure. */
  #noteTold(originKey: string, told: Omit<OriginalRecord, 'checkedAtMs'>): void {
    const { failure, ...record } = this.#records.get(originKey) ?? {};
    this.#records.set(originKey, { ...record, ...told, checkedAtMs: this.#clock.nowMs() });
  }

  #update(originKey: string, change: Partial<OriginalRecord>): void {
    const record = this.#records.get(originKey) ?? { checkedAtMs: NEVER_MS };
    this.#records.set(originKey, { ...record, ...change });
  }

  #freshForMsOf({ freshForMs = this.#options.freshForMs }: OriginalRecord): number {
    return freshForMs;
  }

  #isWithin(periodMs: number, sinceMs: number): boolean {
    return this.#clock.nowMs() - sinceMs < periodMs;
  }
}
