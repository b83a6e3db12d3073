import { LRUCache } from 'lru-cache';
import { type ErrorCode, MediaError } from '../../contract/errors.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { Clock, OriginObject } from '../ports.ts';
import { SiteFailure } from '../site-failure.ts';
import type { SiteContent } from './sites.ts';

/** Which original it is, and in which state. */
export type OriginalIdentity = Pick<OriginObject, 'etag' | 'lastModified'>;

/** How long metadata is fresh. */
export interface FreshnessLimits {
  /** Of an original that is there, in milliseconds. */
  readonly freshForMs: number;
  /** That there is none, in milliseconds. */
  readonly goneForMs: number;
}

/** What else is known of an original that is on another site. */
export type SiteState = Pick<SiteContent, 'validators' | 'freshForMs'>;

interface Metadata {
  /** `undefined`: there is no such original, or the origin has never said. */
  readonly identity: OriginalIdentity | undefined;
  readonly site: SiteState | undefined;
  /** When the origin said so. */
  readonly checkedAtMs: number;
  /** When it failed since then; it may not have. */
  readonly failedAtMs: number;
  readonly failure: ErrorCode | undefined;
}

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * How long a result may be served that a failing origin cannot confirm, in milliseconds
 * (RFC 5861 §4, `stale-if-error`).
 */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** How long an origin that has failed for an original is not asked for it again, in milliseconds. */
const FAILED_FOR_MS = 5_000;

/** The same of another site: its failure is given to all that ask for the URL (contract §8). */
const SITE_FAILED_FOR_MS = 60_000;

/** How many originals are known: some 400 bytes each. */
const MAX_ENTRIES = 100_000;

/** What the origin has said of originals: for all renderings of each, and without asking it again. */
export class MetadataCache {
  readonly #limits: FreshnessLimits;
  readonly #clock: Clock;
  /** Its entries have no time of their own, since three different ones follow from when they were made. */
  readonly #entries = new LRUCache<string, Metadata>({ max: MAX_ENTRIES });

  constructor(limits: FreshnessLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** The state of an original that was there when the origin was asked last, fresh or not. */
  find(originKey: string): OriginalIdentity | undefined {
    return this.#findUsable(originKey)?.identity;
  }

  /** The same of an original on another site. */
  findOfSite(
    originKey: string,
  ): { readonly identity: OriginalIdentity; readonly site: SiteState } | undefined {
    const { identity, site } = this.#findUsable(originKey) ?? {};
    return identity && site && { identity, site };
  }

  /** The state of an original, if the origin was asked recently enough to rely on it. */
  findFresh(originKey: string): OriginalIdentity | undefined {
    const freshForMs = this.#entries.get(originKey)?.site?.freshForMs ?? this.#limits.freshForMs;
    return this.#findWithin(freshForMs, originKey)?.identity;
  }

  /** Whether the origin has said lately that there is no such original. */
  isMissing(originKey: string): boolean {
    const entry = this.#findWithin(this.#limits.goneForMs, originKey);
    return entry !== undefined && entry.identity === undefined;
  }

  /** Whether the origin has failed just now when it was asked for this original. */
  hasFailed(originKey: string): boolean {
    const failedAtMs = this.#entries.get(originKey)?.failedAtMs ?? NEVER_MS;
    return this.#clock.nowMs() - failedAtMs < FAILED_FOR_MS;
  }

  /** The error of another site that has failed lately for this original. */
  findFailure(originKey: string): MediaError | undefined {
    const { failure, failedAtMs = NEVER_MS } = this.#entries.get(originKey) ?? {};
    if (failure === undefined || this.#clock.nowMs() - failedAtMs >= SITE_FAILED_FOR_MS) {
      return undefined;
    }
    const cause = new SiteFailure('The same URL failed lately.', { reason: 'remembered' });
    return new MediaError(failure, { cause });
  }

  /** The origin has shown the original, or, without an identity, said that there is none. */
  noteFound(originKey: string, identity: OriginalIdentity | undefined, site?: SiteState): void {
    const [checkedAtMs, failedAtMs, failure] = [this.#clock.nowMs(), NEVER_MS, undefined];
    this.#entries.set(originKey, { identity, site, checkedAtMs, failedAtMs, failure });
  }

  /** A read has failed: there is no such original, or the origin could not say. Other errors say nothing of it. */
  noteError(originKey: string, error: unknown): void {
    if (!(error instanceof MediaError)) return;
    const failure = error.code;
    if (failure === 'UNKNOWN_MEDIA') this.noteFound(originKey, undefined);
    if (!isOriginFailure(error)) return;
    const { identity, site, checkedAtMs = NEVER_MS } = this.#entries.get(originKey) ?? {};
    const failedAtMs = this.#clock.nowMs();
    this.#entries.set(originKey, { identity, site, checkedAtMs, failedAtMs, failure });
  }

  /** Forgets one original; the origin is asked again. */
  forget(originKey: string): void {
    this.#entries.delete(originKey);
  }

  /** Forgets the originals whose keys fit; the origin is asked again. */
  purge(fits: (originKey: string) => boolean): void {
    deleteWhere(this.#entries, fits);
  }

  /** What may still be served while the origin fails: for so long after it has ceased to be fresh. */
  #findUsable(originKey: string): Metadata | undefined {
    const freshForMs = this.#entries.get(originKey)?.site?.freshForMs ?? 0;
    return this.#findWithin(freshForMs + STALE_IF_ERROR_MS, originKey);
  }

  /** What the origin has said in the time until now. */
  #findWithin(periodMs: number, originKey: string): Metadata | undefined {
    const entry = this.#entries.get(originKey);
    if (entry === undefined) return undefined;
    return this.#clock.nowMs() - entry.checkedAtMs < periodMs ? entry : undefined;
  }
}

/** Whether the origin could not tell what it has. */
export function isOriginFailure(error: unknown): boolean {
  const code = error instanceof MediaError ? error.code : undefined;
  return code === 'ORIGIN_ERROR' || code === 'ORIGIN_TIMEOUT';
}
