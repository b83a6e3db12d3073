import { LRUCache } from 'lru-cache';
import {
  type ErrorCode,
  isFaultOfOriginal,
  isOriginFailure,
  MediaError,
} from '../../contract/errors.ts';
import type { KeptMetadata, MetadataOutcome } from '../../contract/metadata.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import { deleteWhere } from '../memory-cache.ts';
import {
  type Clock,
  type Opened,
  type OriginalIdentity,
  type SourceValidators,
  WorkerLost,
} from '../ports.ts';
import { ownUrlOf, SiteFailure } from '../site-failure.ts';
import type { Backend } from './backend.ts';

/** First bytes of an original that is passed on in parts, and its type and state. */
export interface Beginning extends Pick<Opened, 'sizeBytes' | 'etag' | 'lastModified'> {
  readonly prefix: Uint8Array;
  readonly contentType: string;
  /** Whether the source gives parts. */
  readonly hasParts: boolean;
  readonly freshForMs: number | undefined;
}

interface SourceFailure {
  readonly code: ErrorCode;
  readonly atMs: number;
  readonly ownUrl: string | undefined;
}

/** Facts of one state of an original that were expensive to find out. */
export interface OriginalDetails {
  readonly etag: string;
  /** Size of an original that is a video, in bytes. */
  readonly videoBytes?: number;
  readonly moving?: MovingFacts;
  readonly metadata?: KeptMetadata;
  /** SHA-256 of the bytes, hexadecimal. */
  readonly sha256?: string;
  /** Outcome of the removal of metadata from the upload. */
  readonly removal?: MetadataOutcome;
}

/** Everything that is known about one original. */
interface OriginalRecord {
  /** `undefined`: the original is missing, or the source has never responded. */
  readonly identity?: OriginalIdentity | undefined;
  /** Time of the last response of the source. */
  readonly checkedAtMs: number;
  /** Period for which that response is valid, if the source tells one. */
  readonly freshForMs?: number | undefined;
  readonly validators?: SourceValidators | undefined;
  /** Failure of the source since that response. */
  readonly failure?: SourceFailure | undefined;
  /** Crashes of workers that rendered the original. */
  readonly quarantine?: { readonly crashes: number; readonly untilMs: number };
  /** Cheapest render that passed the deadline. Costlier ones are refused, too. */
  readonly timeout?: { readonly costMs: number; readonly untilMs: number };
  readonly beginning?: { readonly known: Beginning; readonly untilMs: number } | undefined;
  readonly details?: OriginalDetails;
}

const UNKNOWN: OriginalRecord = { checkedAtMs: Number.NEGATIVE_INFINITY };

/**
 * Age up to which a result may be served that a failing source cannot confirm, in milliseconds
 * (RFC 5861 §4, `stale-if-error`), counted from when it ceased to be fresh.
 */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** Crashes after which all renders of an original are refused; renders under way may add to them. */
const MAX_CRASHES = 3;

/** Period after the last crash, and after a render that passed the deadline, in milliseconds (contract §5). */
const QUARANTINE_MS = 10 * 60_000;

/** Maximum period for which a request is refused before its original is read again, in milliseconds. */
const TIMEOUT_FOR_MS = 60_000;

/** Bounds of the records, in bytes: some 100 000 originals, fewer where beginnings are remembered. */
const MAX_BYTES = 48 * 1024 * 1024;
const RECORD_BYTES = 480;
const DETAILS_BYTES = 1_024;

/** Requests whose refusals are remembered: some 300 bytes each. */
const MAX_REFUSALS = 10_000;

/** Refusal of a request, as the client sees it. */
interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly untilMs: number;
}

/** Period for which a 415 or 422 is remembered, in milliseconds: the work would be repeated, whatever HTTP caches store. */
const REFUSED_FOR_MS = 5 * 60_000;

/** Periods for which responses of a source are valid, in milliseconds. */
interface Validity {
  /** Period for an original that exists. */
  readonly freshForMs: number;
  /** Period for a missing one. */
  readonly goneForMs: number;
}

/**
 * Records of originals: responses and failures of the source, costs of renders; and refusals of single requests. A
 * record serves all renderings of an original.
 */
export class OriginalRecords {
  readonly #validity: Validity;
  readonly #clock: Clock;
  readonly #records = new LRUCache<string, OriginalRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ beginning, details }, key) =>
      RECORD_BYTES +
      2 * key.length +
      (beginning?.known.prefix.length ?? 0) +
      (details === undefined ? 0 : DETAILS_BYTES),
  });
  /** By result key. Not the errors: an error keeps its stack, and its cause, some kilobytes. */
  readonly #refusals = new LRUCache<string, Refusal>({ max: MAX_REFUSALS });

  constructor(validity: Validity, clock: Clock) {
    this.#validity = validity;
    this.#clock = clock;
  }

  /** Returns the identity of an original if the source confirmed it recently enough. */
  findFresh(originKey: string): OriginalIdentity | undefined {
    const { identity, checkedAtMs, freshForMs = this.#validity.freshForMs } = this.#get(originKey);
    return this.#isWithin(freshForMs, checkedAtMs) ? identity : undefined;
  }

  /** Returns the last known state, as long as it may be served while the source fails. */
  findLast(originKey: string): Pick<OriginalRecord, 'identity' | 'validators'> {
    const { identity, validators, checkedAtMs, freshForMs = 0 } = this.#get(originKey);
    const isUsable = this.#isWithin(freshForMs + STALE_IF_ERROR_MS, checkedAtMs);
    return isUsable && identity !== undefined ? { identity, validators } : {};
  }

  /** Returns the rest of the period for which the source allows to keep an original, in milliseconds, while it is fresh. */
  findFreshForMs(originKey: string): number | undefined {
    const { checkedAtMs, freshForMs } = this.#get(originKey);
    if (this.findFresh(originKey) === undefined || freshForMs === undefined) return undefined;
    return freshForMs - (this.#clock.nowMs() - checkedAtMs);
  }

  /** Whether the source has reported lately that the original is missing. */
  isMissing(originKey: string): boolean {
    const { identity, checkedAtMs } = this.#get(originKey);
    return identity === undefined && this.#isWithin(this.#validity.goneForMs, checkedAtMs);
  }

  /** Returns a failure of the source for an original within the last `periodMs`. */
  findFailure(
    originKey: string,
    periodMs: number,
    { isExternal }: Backend,
  ): MediaError | undefined {
    const { failure } = this.#get(originKey);
    if (failure === undefined || !this.#isWithin(periodMs, failure.atMs)) return undefined;
    const message = 'The source failed for the same original lately.';
    const cause = isExternal
      ? new SiteFailure(message, { reason: 'remembered', ownUrl: failure.ownUrl })
      : new Error(message);
    return new MediaError(failure.code, { cause });
  }

  noteFound(
    originKey: string,
    identity: OriginalIdentity,
    { freshForMs, validators }: Pick<Opened, 'freshForMs' | 'validators'> = {},
  ): void {
    this.#noteTold(originKey, { identity, freshForMs, validators });
  }

  /** Notes the error of a read: the original is missing, or the source failed. Other errors say nothing about it. */
  noteError(originKey: string, error: unknown): void {
    if (!(error instanceof MediaError)) return;
    if (error.code === 'UNKNOWN_MEDIA') this.#noteTold(originKey, { identity: undefined });
    if (!isOriginFailure(error)) return;
    const { code } = error;
    const failure = { code, atMs: this.#clock.nowMs(), ownUrl: ownUrlOf(error) };
    this.#update(originKey, { failure });
  }

  /** Returns the beginning of an original that is passed on in parts, while it is fresh. */
  findBeginning(originKey: string): Beginning | undefined {
    const { beginning } = this.#get(originKey);
    if (beginning === undefined || !this.#isBefore(beginning.untilMs)) return undefined;
    return { ...beginning.known, freshForMs: beginning.untilMs - this.#clock.nowMs() };
  }

  noteBeginning(originKey: string, known: Beginning): void {
    const { etag, sizeBytes, hasParts, freshForMs } = known;
    if (etag === undefined || sizeBytes === undefined || !hasParts) return;
    const untilMs = this.#clock.nowMs() + (freshForMs ?? 0);
    this.#update(originKey, { beginning: { known, untilMs } });
  }

  forgetBeginning(originKey: string): void {
    this.#update(originKey, { beginning: undefined });
  }

  findDetails(originKey: string, etag: string): OriginalDetails | undefined {
    const { details } = this.#get(originKey);
    return details?.etag === etag ? details : undefined;
  }

  findSha256(originKey: string, etag: string): string | undefined {
    return this.findDetails(originKey, etag)?.sha256;
  }

  /** Returns the states that are known to have one of these digests, by the keys of their originals. */
  findByDigest(digests: ReadonlySet<string>) {
    const found = new Map<string, { readonly etag: string; readonly sha256: string }>();
    if (digests.size === 0) return found;
    this.#records.forEach(({ details: { etag = '', sha256 } = {} }, key) => {
      if (sha256 !== undefined && digests.has(sha256)) found.set(key, { etag, sha256 });
    });
    return found;
  }

  /** Returns the keys of the originals that one of these URLs sent, or that its redirects led to. */
  findKeysSentBy(urlDigests: ReadonlySet<string>): readonly string[] {
    const found: string[] = [];
    if (urlDigests.size === 0) return found;
    this.#records.forEach(({ validators }, key) => {
      if (validators?.urlDigests.some((digest) => urlDigests.has(digest))) found.push(key);
    });
    return found;
  }

  noteDetails(originKey: string, etag: string, change: Partial<OriginalDetails>): void {
    const details = { ...this.findDetails(originKey, etag), ...change, etag };
    this.#update(originKey, { details });
  }

  /** @throws MediaError that this very request was refused with lately, or `UNKNOWN_MEDIA` */
  throwIfRefused(resultKey: string, originKey: string): void {
    const refusal = this.#refusals.get(resultKey);
    if (refusal !== undefined && this.#isBefore(refusal.untilMs)) {
      const cause = new Error('The same request failed lately.');
      throw new MediaError(refusal.code, { cause, message: refusal.message });
    }
    if (this.isMissing(originKey)) throw new MediaError('UNKNOWN_MEDIA');
  }

  /**
   * Remembers a fault of the original, which another attempt would only repeat, and counts crashes.
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

  /** Remembers that a render passed the deadline; the cheapest one stands for all. */
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

  /**
   * Forgets an original that was uploaded.
   *
   * @returns whether one existed before: then its results may be kept somewhere
   */
  forget(originKey: string): boolean {
    const wasThere = this.#get(originKey).identity !== undefined;
    this.#records.delete(originKey);
    return wasThere;
  }

  /**
   * Forgets the originals, and the refusals of requests, with matching keys.
   *
   * @param keepsDigests keeps the digests, by which the originals may be blocked
   */
  purge(
    fitsOriginal: (originKey: string) => boolean,
    fitsKey: (key: string) => boolean,
    keepsDigests: boolean,
  ): void {
    const kept = new Map<string, OriginalDetails>();
    if (keepsDigests) {
      this.#records.forEach(({ details: { etag, sha256 } = { etag: '' } }, key) => {
        if (sha256 !== undefined && fitsOriginal(key)) kept.set(key, { etag, sha256 });
      });
    }
    deleteWhere(this.#records, fitsOriginal);
    for (const [key, details] of kept) this.#update(key, { details });
    this.purgeRefusals(fitsKey);
  }

  purgeRefusals(fitsKey: (key: string) => boolean): void {
    deleteWhere(this.#refusals, fitsKey);
  }

  #crashesOf(originKey: string): number {
    const { quarantine } = this.#get(originKey);
    return quarantine && this.#isBefore(quarantine.untilMs) ? quarantine.crashes : 0;
  }

  #findTimeout(originKey: string): OriginalRecord['timeout'] {
    const { timeout } = this.#get(originKey);
    return timeout && this.#isBefore(timeout.untilMs) ? timeout : undefined;
  }

  /** Notes a response of the source, which ends a failure. */
  #noteTold(originKey: string, told: Omit<OriginalRecord, 'checkedAtMs'>): void {
    this.#update(originKey, { failure: undefined, ...told, checkedAtMs: this.#clock.nowMs() });
  }

  #update(originKey: string, change: Partial<OriginalRecord>): void {
    this.#records.set(originKey, { ...this.#get(originKey), ...change });
  }

  #get(originKey: string): OriginalRecord {
    return this.#records.get(originKey) ?? UNKNOWN;
  }

  #isWithin(periodMs: number, sinceMs: number): boolean {
    return this.#clock.nowMs() - sinceMs < periodMs;
  }

  #isBefore(untilMs: number): boolean {
    return this.#clock.nowMs() < untilMs;
  }
}
