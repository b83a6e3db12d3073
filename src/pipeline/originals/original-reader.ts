import type { MemoryCache } from '../memory-cache.ts';
import type { Meter } from '../meter.ts';
import type { CachedOriginal, OriginBytes, OriginObject } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import type { FlightControls } from '../single-flight.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';
import type { MetadataCache, OriginalIdentity } from './metadata-cache.ts';
import { holdOriginal, type OriginAccess, openForMemory, readPrefix } from './read-original.ts';

/** What an original is read with. */
export interface ReaderParts {
  readonly access: OriginAccess;
  /** The memory that they are given while they are needed. */
  readonly budget: MemoryBudget;
  readonly metadata: MetadataCache;
  /** Those that were read lately, by their keys. */
  readonly cache: MemoryCache<CachedOriginal>;
  readonly meter: Pick<Meter, 'lookups'>;
}

/**
 * How much to ask of the origin at first: the whole; enough to know an animation by; or only whether
 * it is what it was, since its bytes may not be needed.
 */
export type Approach = 'whole' | 'first frames' | 'identity';

/** What identifies an original, and whether the origin was asked for it just now. */
export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  readonly wasAsked: boolean;
}

/** An original in memory, until its last reader has gone. */
export type HeldOriginal = CachedOriginal & Reservation;

/** One original, opened for all requests that need it at the same time; `identify` comes first. */
export interface OpenedOriginal {
  /**
   * Finds out which original it is: by what is known of it, where that is fresh; else by asking.
   *
   * @param trace shows the visit to the origin, if there is one
   * @throws MediaError of the origin
   */
  identify(approach: Approach, trace: RequestTrace): Promise<IdentifiedOriginal>;
  /** Whether its bytes are in memory, so that to read it asks nothing of the origin. */
  readonly isInMemory: boolean;
  /**
   * Its first bytes, enough to know an animation by; `undefined` where all of them are in memory or on their
   * way, so that nothing could be saved.
   *
   * @throws MediaError of the origin
   */
  peek(): Promise<Uint8Array | undefined>;
  /**
   * Reads it to its end, into memory that is accounted for.
   *
   * @throws MediaError `OVERLOADED` if there is no room for it, and what the origin throws
   */
  read(): Promise<HeldOriginal>;
}

/** Enough for the first frames of an animation, in bytes. */
const FIRST_FRAMES_BYTES = 256 * 1024;

/** There is no cheaper request that every origin responds to rightly: of a missing object's HEAD, S3 does not say why. */
const IDENTITY_BYTES = 1;

/**
 * One original for all requests that need it at the same time. The first call of each method asks the
 * origin, if need be; the others share its promise. `identify` comes first.
 */
export class OriginalReader implements OpenedOriginal {
  readonly #parts: ReaderParts;
  readonly #originKey: string;
  /** Its signal aborts when no request needs the original any more. */
  readonly #flight: FlightControls;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #peeked: Promise<OriginBytes> | undefined;
  #held: Promise<HeldOriginal> | undefined;
  /** By what the origin has shown last. */
  #identity: OriginalIdentity | undefined;
  #prefix: OriginBytes | undefined;
  /** The whole, on its way. */
  #opened: OriginObject | OriginBytes | undefined;

  constructor(parts: ReaderParts, originKey: string, flight: FlightControls) {
    this.#parts = parts;
    this.#originKey = originKey;
    this.#flight = flight;
    releaseAfter(flight, () => this.#held);
  }

  async identify(approach: Approach, trace: RequestTrace): Promise<IdentifiedOriginal> {
    const visit = trace.enter('origin');
    visit.span?.setAttributes({ 'darkroom.origin.part': 'state' });
    try {
      this.#identified ??= this.#identify(approach);
      const identified = await this.#identified;
      if (identified.wasAsked) visit.end();
      return identified;
    } catch (error) {
      visit.end(error);
      throw error;
    }
  }

  get isInMemory(): boolean {
    return this.#findCached() !== undefined;
  }

  async peek(): Promise<Uint8Array | undefined> {
    if (this.#held !== undefined || this.#opened !== undefined || this.isInMemory) return undefined;
    if (this.#prefix !== undefined && this.#prefix.bytes.length > IDENTITY_BYTES) {
      return this.#prefix.bytes;
    }
    this.#peeked ??= this.#readPrefix(FIRST_FRAMES_BYTES);
    return (await this.#peeked).bytes;
  }

  read(): Promise<HeldOriginal> {
    this.#held ??= this.#hold();
    return this.#held;
  }

  async #identify(approach: Approach): Promise<IdentifiedOriginal> {
    const { metadata, cache } = this.#parts;
    const fresh = metadata.findFresh(this.#originKey);
    if (fresh !== undefined) {
      this.#identity = fresh;
      return { identity: fresh, wasAsked: false };
    }
    if (approach === 'whole' && cache.get(this.#originKey) === undefined) {
      this.#opened = await this.#ask(() => this.#open());
      return { identity: identityOf(this.#opened), wasAsked: true };
    }
    const count = approach === 'first frames' ? FIRST_FRAMES_BYTES : IDENTITY_BYTES;
    return { identity: identityOf(await this.#readPrefix(count)), wasAsked: true };
  }

  #open(): Promise<OriginObject | OriginBytes> {
    return openForMemory(this.#parts.access, this.#originKey, this.#flight.signal);
  }

  async #readPrefix(count: number): Promise<OriginBytes> {
    this.#prefix = await this.#ask(() =>
      readPrefix(this.#parts.access, this.#originKey, count, this.#flight.signal),
    );
    return this.#prefix;
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#parts.cache.get(this.#originKey);
    return cached?.etag === this.#identity?.etag ? cached : undefined;
  }

  async #hold(): Promise<HeldOriginal> {
    this.#flight.signal.throwIfAborted();
    const { cache } = this.#parts;
    const cached = holdCached(this.#parts, this.#findCached());
    if (cached !== undefined) return cached;
    const held = await this.#ask(() => this.#readWhole());
    if (!this.#flight.isRetired()) {
      cache.set(this.#originKey, { ...identityOf(held), bytes: held.bytes });
    }
    return held;
  }

  async #readWhole(): Promise<HeldOriginal> {
    const { access, budget } = this.#parts;
    const prefix = this.#prefix;
    if (prefix !== undefined && prefix.bytes.length === prefix.sizeBytes) {
      return { ...budget.reserve(prefix.sizeBytes), ...identityOf(prefix), bytes: prefix.bytes };
    }
    const object = this.#opened ?? (await this.#open());
    const held = await holdOriginal(object, access.limits, budget, this.#flight.signal);
    return { ...held, ...identityOf(object) };
  }

  /** Keeps in mind what the origin says, unless the original was purged meanwhile. */
  async #ask<Found extends OriginalIdentity>(ask: () => Promise<Found>): Promise<Found> {
    const { metadata } = this.#parts;
    try {
      const found = await ask();
      this.#identity = identityOf(found);
      if (!this.#flight.isRetired()) metadata.noteFound(this.#originKey, this.#identity);
      return found;
    } catch (error) {
      if (!this.#flight.isRetired()) metadata.noteError(this.#originKey, error);
      throw error;
    }
  }
}

/** Gives the memory of an original back when no request needs it any more. */
export function releaseAfter(
  { signal }: Pick<FlightControls, 'signal'>,
  held: () => Promise<HeldOriginal> | undefined,
): void {
  const release = (): void => {
    held()?.then(
      (original) => original.release(),
      () => undefined,
    );
  };
  signal.addEventListener('abort', release, { once: true });
}

/** Takes memory for an original that was found in the cache, and counts whether one was. */
export function holdCached(
  { budget, meter }: Pick<ReaderParts, 'budget' | 'meter'>,
  cached: CachedOriginal | undefined,
): HeldOriginal | undefined {
  meter.lookups.originals[cached === undefined ? 'missed' : 'found'] += 1;
  return cached && { ...budget.reserve(cached.bytes.byteLength), ...cached };
}

/** These two alone: identities are kept for long, and an object has a body, with its socket. */
export function identityOf({ etag, lastModified }: OriginalIdentity): OriginalIdentity {
  return { etag, lastModified };
}
