import { LRUCache } from 'lru-cache';
import type { Clock, OriginObject } from '../ports.ts';

/** Which original it is, and in which state. */
export type OriginalIdentity = Pick<OriginObject, 'etag' | 'lastModified'>;

/** How long metadata is fresh. */
export interface FreshnessLimits {
  /** Of an original that is there, in milliseconds. */
  readonly freshForMs: number;
  /** That there is none, in milliseconds. */
  readonly goneForMs: number;
}

interface Metadata {
  /** `undefined`: there is no such original, or the origin has never said. */
  readonly identity: OriginalIdentity | undefined;
  /** When the origin said so. */
  readonly checkedAtMs: number;
  /** When it failed since then; it may not have. */
  readonly failedAtMs: number;
}

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * How long a result may be served that a failing origin cannot confirm, in milliseconds
 * (RFC 5861 §4, `stale-if-error`).
 */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** How long an origin that has failed for an original is not asked for it again, in milliseconds. */
const FAILED_FOR_MS = 5_000;

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
    return this.#findWithin(STALE_IF_ERROR_MS, originKey)?.identity;
  }

  /** The state of an original, if the origin was asked recently enough to rely on it. */
  findFresh(originKey: string): OriginalIdentity | undefined {
    return this.#findWithin(this.#limits.freshForMs, originKey)?.identity;
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

  /** The origin has shown the original, or, without an identity, said that there is none. */
  noteFound(originKey: string, identity: OriginalIdentity | undefined): void {
    const checkedAtMs = this.#clock.nowMs();
    this.#entries.set(originKey, { identity, checkedAtMs, failedAtMs: NEVER_MS });
  }

  /** The origin could not say. */
  noteFailed(originKey: string): void {
    const { identity, checkedAtMs = NEVER_MS } = this.#entries.get(originKey) ?? {};
    this.#entries.set(originKey, { identity, checkedAtMs, failedAtMs: this.#clock.nowMs() });
  }

  /** Forgets the originals whose keys fit; the origin is asked again. */
  purge(fits: (originKey: string) => boolean): void {
    for (const originKey of [...this.#entries.keys()].filter(fits)) this.#entries.delete(originKey);
  }

  /** What the origin has said in the time until now. */
  #findWithin(periodMs: number, originKey: string): Metadata | undefined {
    const entry = this.#entries.get(originKey);
    if (entry === undefined) return undefined;
    return this.#clock.nowMs() - entry.checkedAtMs < periodMs ? entry : undefined;
  }
}
