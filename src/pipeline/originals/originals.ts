import { createHash } from 'node:crypto';
import type { Span } from '@opentelemetry/api';
import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { MemoryCache } from '../memory-cache.ts';
import type { Meter } from '../meter.ts';
import type {
  CachedOriginal,
  Clock,
  Opened,
  OpenOptions,
  OriginalIdentity,
  Unchanged,
} from '../ports.ts';
import { noteErrorCode, type RequestTrace } from '../request-trace.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import { ownUrlOf } from '../site-failure.ts';
import type { Backend } from './backend.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';
import { contentOf, discard, holdBody, isOriginFailure, openBody } from './open-body.ts';
import type { OriginalRecords } from './records.ts';

/** Parts of `Originals`. */
export interface OriginalsParts {
  readonly storage: Backend;
  /** `undefined`: media of other sites are not served. */
  readonly sites: Backend | undefined;
  readonly records: OriginalRecords;
  /** Bounds the memory of originals in use. */
  readonly budget: MemoryBudget;
  /** Originals that were read lately, by origin key. */
  readonly cache: MemoryCache<CachedOriginal>;
  readonly clock: Clock;
  readonly meter: Pick<Meter, 'count'>;
}

/** Name of an original; other sites' originals have a URL. */
type OriginalName = Pick<MediaRequest, 'originKey'> & Partial<Pick<MediaRequest, 'url'>>;

/** Identity of an original, and how it became known. */
export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  /** Whether the source was asked for this request. */
  readonly wasAsked: boolean;
  /** Error of a source that cannot confirm the identity: only results that exist already may be served. */
  readonly failure?: unknown;
}

/** Options of an identification. */
export interface IdentifyOptions {
  /** Whether the identity may suffice: then no transfer is begun that might have to be broken off. */
  readonly isIdentityEnough: boolean;
  /** Whether an older result is in memory. */
  readonly hasResult: boolean;
  readonly trace: RequestTrace;
}

/** An original in memory, until its last user has left. */
export type HeldOriginal = CachedOriginal & Reservation;

/** Range of a read for the identity alone. Not a HEAD: S3 does not say why one fails. */
const FIRST_BYTE = { first: 0, last: 0 } as const;

/**
 * Original for all requests that need it at the same time, in whatever sizes. The first call of each method asks the
 * source if necessary, and the others share its promise. `identify` comes first; `read` continues the body that it has
 * opened.
 */
export class Original {
  readonly #parts: OriginalsParts;
  readonly #backend: Backend;
  readonly originKey: string;
  /** Name of the original at its source. */
  readonly #sourceKey: string;
  /** The flight's signal aborts when no request needs the original any more. */
  readonly #flight: FlightControls;
  readonly #beganMs: number;
  /** Whether the original was purged since the work began: then nothing of it is kept, joined or served. */
  isOutdated = false;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #held: Promise<HeldOriginal> | undefined;
  #identity: OriginalIdentity | undefined;
  /** The whole original, whose body was not read yet. */
  #opened: Opened | undefined;

  constructor(parts: OriginalsParts, { originKey, url }: OriginalName, flight: FlightControls) {
    const backend = url === undefined ? parts.storage : parts.sites;
    if (backend === undefined) throw new Error('Media of other sites are not served.');
    this.#parts = parts;
    this.#backend = backend;
    this.originKey = originKey;
    this.#sourceKey = url ?? originKey;
    this.#flight = flight;
    this.#beganMs = parts.clock.nowMs();
    flight.signal.addEventListener('abort', () => this.#release(), { once: true });
  }

  /** Whether other requests may join the work. */
  get isJoinable(): boolean {
    const ageMs = this.#parts.clock.nowMs() - this.#beganMs;
    return ageMs < this.#backend.joinableForMs && !this.isOutdated;
  }

  /** Whether a read needs nothing from the source: the bytes are in memory, or came with the identity. */
  get isInMemory(): boolean {
    const cameAlong = this.#held !== undefined && this.#backend.source.identity === 'digest';
    return cameAlong || this.#findCached() !== undefined;
  }

  /** Keeps the original until this work settles, even if all requests leave. */
  keepFor(work: Promise<unknown>): void {
    this.#flight.keep(work);
  }

  /**
   * Identifies the original: from the records if they are fresh, otherwise by asking the source.
   *
   * @throws MediaError of the source; of a failure that is remembered, without asking the source
   */
  async identify(options: IdentifyOptions): Promise<IdentifiedOriginal> {
    const known = this.#identified === undefined ? this.#findKnown(options) : undefined;
    if (known !== undefined) {
      this.#identity = known.identity;
      return known;
    }
    const { trace } = options;
    this.#identified ??= trace.stage('origin', async (span) => {
      span?.setAttributes({ 'darkroom.origin.part': 'state' });
      const identified = await this.#identify(options);
      const { failure } = identified;
      if (span !== undefined && failure instanceof MediaError) noteErrorCode(span, failure.code);
      return identified;
    });
    return this.#identified;
  }

  /**
   * Reads the original to its end, into memory that is accounted for.
   *
   * @throws MediaError `OVERLOADED` if there is no room for it, and what the source throws
   */
  read(): Promise<HeldOriginal> {
    this.#held ??= this.#read();
    return this.#held;
  }

  /** Returns what the records tell: a fresh identity, or a failure of the source just now. */
  #findKnown({ hasResult }: IdentifyOptions): IdentifiedOriginal | undefined {
    const { records } = this.#parts;
    const fresh = records.findFresh(this.originKey);
    if (fresh !== undefined) return { identity: fresh, wasAsked: false };
    const { withResult, withoutResult } = this.#backend.failedForMs;
    const failure = this.#findFailure(hasResult ? withResult : withoutResult);
    if (failure === undefined) return undefined;
    const { identity } = records.findLast(this.originKey);
    if (identity === undefined || ownUrlOf(failure) !== undefined) throw failure;
    return { identity, wasAsked: false, failure };
  }

  async #identify({ isIdentityEnough, trace }: IdentifyOptions): Promise<IdentifiedOriginal> {
    const { records } = this.#parts;
    try {
      this.#identity = await (this.#backend.source.identity === 'tag'
        ? this.#identifyByTag(isIdentityEnough)
        : trace.stage('fetch', (span) => this.#identifyByBytes(isIdentityEnough, span)));
      return { identity: this.#identity, wasAsked: true };
    } catch (failure) {
      const { identity } = records.findLast(this.originKey);
      if (!isOriginFailure(failure) || identity === undefined) throw failure;
      // The site has not failed: it shows an original of ours now.
      if (ownUrlOf(failure) !== undefined) throw failure;
      return { identity, wasAsked: true, failure };
    }
  }

  async #identifyByTag(isIdentityEnough: boolean): Promise<OriginalIdentity> {
    const isWhole = !isIdentityEnough && this.#parts.cache.get(this.originKey) === undefined;
    const opened = contentOf(this.#backend, await this.#ask(isWhole ? {} : { range: FIRST_BYTE }));
    if (isWhole) this.#opened = opened;
    else discard(this.#backend, opened);
    return this.#noteFound(opened);
  }

  async #identifyByBytes(isIdentityEnough: boolean, span?: Span): Promise<OriginalIdentity> {
    const { records, cache } = this.#parts;
    const { identity: last, validators } = records.findLast(this.originKey);
    const hasBytes = last !== undefined && cache.get(this.originKey)?.etag === last.etag;
    const known = isIdentityEnough || hasBytes ? validators : undefined;
    const opened = await this.#ask({ known });
    span?.setAttribute('darkroom.fetch.unchanged', opened.body === undefined);
    if (opened.body !== undefined) {
      this.#held = this.#hold(opened);
      const { etag, lastModified, bytes } = await this.#held;
      span?.setAttribute('darkroom.bytes', bytes.byteLength);
      return { etag, lastModified };
    }
    if (last === undefined) throw new Error('Nothing was known that could be unchanged.');
    const { freshForMs } = opened;
    if (!this.isOutdated) records.noteFound(this.originKey, last, { validators, freshForMs });
    return last;
  }

  async #read(): Promise<HeldOriginal> {
    this.#flight.signal.throwIfAborted();
    const { budget, meter } = this.#parts;
    const cached = this.#findCached();
    meter.count(cached === undefined ? 'cacheMisses' : 'cacheHits', 'originals');
    if (cached !== undefined) return { ...budget.reserve(cached.bytes.byteLength), ...cached };
    if (this.#opened !== undefined) return this.#hold(this.#opened);
    const failure = this.#findFailure(this.#backend.failedForMs.withoutResult);
    if (failure !== undefined) throw failure;
    return this.#hold(contentOf(this.#backend, await this.#ask({})));
  }

  /** Reads what was opened. */
  async #hold(opened: Opened): Promise<HeldOriginal> {
    const { budget, cache } = this.#parts;
    try {
      const held = await holdBody(this.#backend, opened, budget, this.#flight.signal);
      const isByDigest = this.#backend.source.identity === 'digest';
      const identity = this.#noteFound(isByDigest ? digested(opened, held.bytes) : opened);
      this.#identity = identity;
      if (!this.isOutdated) cache.set(this.originKey, { ...identity, bytes: held.bytes });
      return { ...held, ...identity };
    } catch (error) {
      this.#noteError(error);
      throw error;
    }
  }

  async #ask(options: Pick<OpenOptions, 'known' | 'range'>): Promise<Opened | Unchanged> {
    const { signal } = this.#flight;
    try {
      return await openBody(this.#backend, this.#sourceKey, { ...options, signal, isHeld: true });
    } catch (error) {
      this.#noteError(error);
      throw error;
    }
  }

  #findFailure(periodMs: number): unknown {
    return this.#parts.records.findFailure(this.originKey, periodMs, this.#backend);
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#parts.cache.get(this.originKey);
    return cached?.etag === this.#identity?.etag ? cached : undefined;
  }

  #noteFound(opened: Opened): OriginalIdentity {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source has not told the tag of the original.');
    const identity = { etag, lastModified };
    if (!this.isOutdated) this.#parts.records.noteFound(this.originKey, identity, opened);
    return identity;
  }

  #noteError(error: unknown): void {
    if (!this.isOutdated) this.#parts.records.noteError(this.originKey, error);
  }

  #release(): void {
    this.#held?.then(
      (original) => original.release(),
      () => undefined,
    );
  }
}

/** Originals, shared: concurrent requests for the same original, in whatever sizes, cause one read. */
export class Originals {
  readonly #parts: OriginalsParts;
  readonly #flights = new SingleFlight<Original>((original) => original.isJoinable);
  /** Work under way, also that which can no longer be joined. */
  readonly #underWay = new Set<Original>();

  constructor(parts: OriginalsParts) {
    this.#parts = parts;
  }

  /** Joins the work on an original, or begins it; `leave` must be called. */
  join(request: OriginalName) {
    return this.#flights.join(request.originKey, (flight) => {
      const original = new Original(this.#parts, request, flight);
      this.#underWay.add(original);
      flight.signal.addEventListener('abort', () => this.#underWay.delete(original), {
        once: true,
      });
      return original;
    });
  }

  /** Outdates the work under way on originals whose keys fit. */
  outdateWhere(fits: (originKey: string) => boolean): void {
    for (const original of this.#underWay) original.isOutdated ||= fits(original.originKey);
  }

  /** The same, and forgets what is in memory of these originals. */
  purge(fits: (originKey: string) => boolean): void {
    this.outdateWhere(fits);
    this.#parts.cache.deleteWhere(fits);
  }
}

/** Replaces the tag by a digest of the bytes, for sources whose own tags may mean nothing. */
function digested(opened: Opened, bytes: Uint8Array): Opened {
  return { ...opened, etag: createHash('sha256').update(bytes).digest('base64url') };
}
