import { LRUCache } from 'lru-cache';
import { type ErrorCode, isOriginFailure, MediaError } from '../../contract/errors.ts';
import type { CachedMetadata, MetadataOutcome } from '../../contract/metadata.ts';
import type { AvMetadata } from '../../formats/video/av-metadata.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { Clock, Opened, OriginalIdentity, SourceValidators } from '../ports.ts';
import { localUrlOf, SiteFailure } from '../site-failure.ts';
import type { Backend } from './backend.ts';

/** First bytes of an original that is sent in ranges, with its type and state. */
export interface Beginning extends Pick<Opened, 'sizeBytes' | 'etag' | 'lastModified'> {
  readonly prefix: Uint8Array;
  readonly contentType: string;
  readonly hasRanges: boolean;
  readonly freshForMs: number | undefined;
}

interface SourceFailure {
  readonly code: ErrorCode;
  readonly atMs: number;
  readonly localUrl: string | undefined;
}

/** Details of one state that are expensive to find. */
export interface OriginalDetails {
  readonly etag: string;
  /** Size in bytes, for videos only. */
  readonly videoBytes?: number;
  readonly av?: AvMetadata;
  readonly metadata?: CachedMetadata;
  /** SHA-256 (hexadecimal). */
  readonly sha256?: string;
  readonly removal?: MetadataOutcome;
}

interface OriginalRecord {
  /** `undefined` if the original is missing, or the source has never responded. */
  readonly identity?: OriginalIdentity | undefined;
  readonly checkedAtMs: number;
  /** Freshness that this response declares. */
  readonly freshForMs?: number | undefined;
  readonly validators?: SourceValidators | undefined;
  readonly failure?: SourceFailure | undefined;
  readonly beginning?: { readonly known: Beginning; readonly untilMs: number } | undefined;
  readonly details?: OriginalDetails;
}

const UNKNOWN: OriginalRecord = { checkedAtMs: Number.NEGATIVE_INFINITY };

/** Age up to which a result may be served while its source fails, in milliseconds after its freshness (RFC 5861 §4). */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** Maximum size of all records, in bytes: about 100 000 originals, fewer with beginnings. */
const MAX_BYTES = 48 * 1024 * 1024;
const RECORD_BYTES = 480;
const DETAILS_BYTES = 1_024;

interface Validity {
  readonly freshForMs: number;
  /** Validity of a 404. */
  readonly missingForMs: number;
}

/**
 * Records of originals: responses and failures of the source, and details. All renderings of an original share its
 * record.
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
  constructor(validity: Validity, clock: Clock) {
    this.#validity = validity;
    this.#clock = clock;
  }

  /** Returns the identity of an original that was confirmed recently enough. */
  findFresh(originKey: string): OriginalIdentity | undefined {
    const { identity, checkedAtMs, freshForMs = this.#validity.freshForMs } = this.#get(originKey);
    return this.#isWithin(freshForMs, checkedAtMs) ? identity : undefined;
  }

  /** Returns the last known state, while it may be served despite failures. */
  findLast(originKey: string): Pick<OriginalRecord, 'identity' | 'validators'> {
    const { identity, validators, checkedAtMs, freshForMs = 0 } = this.#get(originKey);
    const isUsable = this.#isWithin(freshForMs + STALE_IF_ERROR_MS, checkedAtMs);
    return isUsable && identity !== undefined ? { identity, validators } : {};
  }

  /** Returns the remaining declared freshness, in milliseconds. */
  findFreshForMs(originKey: string): number | undefined {
    const { checkedAtMs, freshForMs } = this.#get(originKey);
    if (this.findFresh(originKey) === undefined || freshForMs === undefined) return undefined;
    return freshForMs - (this.#clock.nowMs() - checkedAtMs);
  }

  /** Whether the source returned a 404 recently. */
  isMissing(originKey: string): boolean {
    const { identity, checkedAtMs } = this.#get(originKey);
    return identity === undefined && this.#isWithin(this.#validity.missingForMs, checkedAtMs);
  }

  /** Returns a failure within the last `periodMs`. */
  findFailure(
    originKey: string,
    periodMs: number,
    { isExternal }: Backend,
  ): MediaError | undefined {
    const { failure } = this.#get(originKey);
    if (failure === undefined || !this.#isWithin(periodMs, failure.atMs)) return undefined;
    const message = 'The source failed for this original recently.';
    const cause = isExternal
      ? new SiteFailure(message, { reason: 'remembered', localUrl: failure.localUrl })
      : new Error(message);
    return new MediaError(failure.code, { cause });
  }

  noteFound(
    originKey: string,
    identity: OriginalIdentity,
    { freshForMs, validators }: Pick<Opened, 'freshForMs' | 'validators'> = {},
  ): void {
    this.#recordResponse(originKey, { identity, freshForMs, validators });
  }

  /** Notes an error if the original is missing or the source failed. */
  noteError(originKey: string, error: unknown): void {
    if (!(error instanceof MediaError)) return;
    if (error.code === 'UNKNOWN_MEDIA') this.#recordResponse(originKey, { identity: undefined });
    if (!isOriginFailure(error)) return;
    const { code } = error;
    const failure = { code, atMs: this.#clock.nowMs(), localUrl: localUrlOf(error) };
    this.#update(originKey, { failure });
  }

  findBeginning(originKey: string): Beginning | undefined {
    const { beginning } = this.#get(originKey);
    if (beginning === undefined || !this.#isBefore(beginning.untilMs)) return undefined;
    return { ...beginning.known, freshForMs: beginning.untilMs - this.#clock.nowMs() };
  }

  noteBeginning(originKey: string, known: Beginning): void {
    const { etag, sizeBytes, hasRanges, freshForMs } = known;
    if (etag === undefined || sizeBytes === undefined || !hasRanges) return;
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

  /** Returns the states with one of these digests, by origin key. */
  findByDigest(digests: ReadonlySet<string>) {
    const found = new Map<string, { readonly etag: string; readonly sha256: string }>();
    if (digests.size === 0) return found;
    this.#records.forEach(({ details: { etag = '', sha256 } = {} }, key) => {
      if (sha256 !== undefined && digests.has(sha256)) found.set(key, { etag, sha256 });
    });
    return found;
  }

  /** Returns the keys of originals whose bytes came from one of these URLs, directly or by redirect. */
  findKeysFetchedFrom(urlDigests: ReadonlySet<string>): readonly string[] {
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

  /** Forgets an original that was uploaded or replaced; returns whether it was known, and may have results. */
  forget(originKey: string): boolean {
    const wasKnown = this.#get(originKey).identity !== undefined;
    this.#records.delete(originKey);
    return wasKnown;
  }

  /** Forgets matching originals. @param keepsDigests keeps the digests, by which they may be blocked */
  purge(matchesOriginal: (originKey: string) => boolean, keepsDigests: boolean): void {
    const kept = new Map<string, OriginalDetails>();
    if (keepsDigests) {
      this.#records.forEach(({ details: { etag, sha256 } = { etag: '' } }, key) => {
        if (sha256 !== undefined && matchesOriginal(key)) kept.set(key, { etag, sha256 });
      });
    }
    deleteWhere(this.#records, matchesOriginal);
    for (const [key, details] of kept) this.#update(key, { details });
  }

  /** Records a response, which ends a failure. */
  #recordResponse(originKey: string, response: Omit<OriginalRecord, 'checkedAtMs'>): void {
    this.#update(originKey, { failure: undefined, ...response, checkedAtMs: this.#clock.nowMs() });
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
