import { ExpiringMap } from '../expiring-map.ts';
import type { Clock, OriginObject } from '../ports.ts';

/** Which original it is, and in which state. */
export type OriginalIdentity = Pick<OriginObject, 'etag' | 'lastModified'>;

/** What the origin said of an original when it was asked last. */
export interface OriginalVersion {
  readonly identity: OriginalIdentity;
  /** Whether that is recent enough to go by. */
  readonly isFresh: boolean;
}

/** How long things are known. */
export interface VersionLimits {
  /** How long an answer of the origin holds, in milliseconds. */
  readonly freshForMs: number;
  /** How long an original that is not there is not looked for again, in milliseconds. */
  readonly goneForMs: number;
}

interface Checked {
  readonly identity: OriginalIdentity;
  readonly checkedAtMs: number;
}

/** An order to forget. */
interface Forgotten {
  readonly epoch: number;
  readonly fits: (originKey: string) => boolean;
}

/** How many orders to forget are told apart; asked one after the other, where an answer is not in memory. */
const MAX_FORGOTTEN = 200;

/**
 * How long an answer may be served that an origin which fails cannot confirm, in milliseconds
 * (RFC 5861 §4, `stale-if-error`).
 */
const STALE_IF_ERROR_MS = 24 * 60 * 60_000;

/** How long an origin that has failed for an original is left alone with it, in milliseconds. */
const FAILED_FOR_MS = 5_000;

/** How many originals are known: some 400 bytes each. */
const MAX_ENTRIES = 100_000;

/** What is known of originals without asking the origin: once for all renderings of each. */
export class OriginalVersions {
  readonly #limits: VersionLimits;
  readonly #clock: Clock;
  readonly #checked: ExpiringMap<Checked>;
  readonly #gone: ExpiringMap<true>;
  readonly #failed: ExpiringMap<true>;
  /** The latest orders to forget, the oldest first. */
  readonly #forgotten: Forgotten[] = [];
  #orders = 0;
  /** The epoch of whatever no order in the list concerns. */
  #floor = 0;

  constructor(limits: VersionLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#checked = new ExpiringMap(MAX_ENTRIES, clock);
    this.#gone = new ExpiringMap(MAX_ENTRIES, clock);
    this.#failed = new ExpiringMap(MAX_ENTRIES, clock);
  }

  /** The state of an original, fresh or not; `undefined` where it is not known, or not any more. */
  find(originKey: string): OriginalVersion | undefined {
    const checked = this.#checked.get(originKey);
    if (checked === undefined) return undefined;
    const ageMs = this.#clock.nowMs() - checked.checkedAtMs;
    return { identity: checked.identity, isFresh: ageMs < this.#limits.freshForMs };
  }

  /** Whether the origin has said lately that there is none. */
  isGone(originKey: string): boolean {
    return this.#gone.get(originKey) ?? false;
  }

  /** Whether the origin has failed to tell just now. */
  hasFailed(originKey: string): boolean {
    return this.#failed.get(originKey) ?? false;
  }

  /** Changes whenever an original is forgotten on purpose: what was begun before may be out of date. */
  epochOf(originKey: string): number {
    return this.#forgotten.findLast(({ fits }) => fits(originKey))?.epoch ?? this.#floor;
  }

  /** The origin has shown the original. */
  noteSeen(originKey: string, { etag, lastModified }: OriginalIdentity): void {
    const identity = { etag, lastModified };
    const checkedAtMs = this.#clock.nowMs();
    this.#checked.set(originKey, { identity, checkedAtMs }, STALE_IF_ERROR_MS);
    this.#gone.delete(originKey);
    this.#failed.delete(originKey);
  }

  /** The origin has said that there is none. */
  noteGone(originKey: string): void {
    this.#checked.delete(originKey);
    this.#failed.delete(originKey);
    this.#gone.set(originKey, true, this.#limits.goneForMs);
  }

  /** The origin could not tell. */
  noteFailed(originKey: string): void {
    this.#failed.set(originKey, true, FAILED_FOR_MS);
  }

  /** Forgets all originals whose keys fit; the origin is asked again. */
  forget(fits: (originKey: string) => boolean): void {
    this.#orders += 1;
    this.#forgotten.push({ epoch: this.#orders, fits });
    const tooMany = this.#forgotten.length > MAX_FORGOTTEN ? this.#forgotten.shift() : undefined;
    // From now on it concerns every original: better one read too many than one that is out of date.
    if (tooMany !== undefined) this.#floor = tooMany.epoch;
    for (const map of [this.#checked, this.#gone, this.#failed]) map.deleteWhere(fits);
  }
}
