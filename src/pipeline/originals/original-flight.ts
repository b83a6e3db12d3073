import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import { readUrl } from '../../contract/external-url.ts';
import { isVideoName } from '../../contract/media-request.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import type { Meter } from '../meter.ts';
import type {
  CachedOriginal,
  Clock,
  Opened,
  OpenOptions,
  OriginalIdentity,
  Unchanged,
} from '../ports.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { FlightControls } from '../single-flight.ts';
import { ownUrlOf } from '../site-failure.ts';
import {
  type Backend,
  type Backends,
  locateOriginal,
  type OriginalLocation,
  type OriginalName,
} from './backend.ts';
import { isDigest } from './digests.ts';
import { type LoadedOriginal, type LoadParts, loadBody, videoOf } from './load-original.ts';
import { contentOf, discard, openBody } from './open-body.ts';
import { FIRST_BLOCK, isReplaced, OriginalReader } from './original-reader.ts';
import type { OriginalDetails } from './records.ts';

export interface FlightParts extends Backends, LoadParts {
  /** Maximum number of bytes that are read of one original by ranges. */
  readonly maxRangeBytes: number;
  /** Ends the work in the background. */
  readonly closing: AbortSignal;
  readonly clock: Clock;
  readonly meter: Pick<Meter, 'count'>;
}

/** Identity of an original, and how it became known. */
export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  readonly contactedOrigin: boolean;
  /** Error of a source that cannot confirm the identity: only results that exist already may be served. */
  readonly failure?: unknown;
}

export interface IdentifyOptions {
  /** Whether the identity may suffice: then no transfer is begun that might have to be broken off. */
  readonly isIdentityEnough: boolean;
  /** Whether an older result is in memory. */
  readonly hasResult: boolean;
  readonly trace: RequestTrace;
}

/** Facts of a video or of audio, and the time that it took to read them, in milliseconds. */
export interface Inspected {
  readonly facts: MovingFacts;
  readonly spentMs: number;
}

/** Range of a read for the identity alone. Not a HEAD: S3 does not return the reason of a failure. */
const FIRST_BYTE = { first: 0, last: 0 } as const;

/**
 * Work on one original for all requests that need it at the same time, in whatever sizes. The first call of each method
 * contacts the source if necessary, and the others share its promise. `identify` comes first; `load` continues the body
 * that it has opened. What is learned is remembered through this class, unless the original was purged since.
 */
export class OriginalFlight implements OriginalLocation {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
  /** Aborts when no request needs the original any more. */
  readonly signal: AbortSignal;
  readonly #parts: FlightParts;
  readonly #controls: FlightControls;
  readonly #beganMs: number;
  #isInvalidated = false;
  #identity: OriginalIdentity | undefined;
  /** Body that was opened for the identity, and not read yet. */
  #opened: Opened | undefined;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #loaded: Promise<LoadedOriginal> | undefined;
  #inspected: Promise<Inspected> | undefined;
  /** Reader of the present state; all requests share its blocks. */
  #reader: OriginalReader | undefined;

  constructor(parts: FlightParts, name: OriginalName, controls: FlightControls) {
    const { backend, originKey, sourceKey } = locateOriginal(parts, name);
    this.backend = backend;
    this.originKey = originKey;
    this.sourceKey = sourceKey;
    this.signal = controls.signal;
    this.#parts = parts;
    this.#controls = controls;
    this.#beganMs = parts.clock.nowMs();
    this.signal.addEventListener('abort', () => this.#release(), { once: true });
  }

  /** Whether the original was purged since the work began: then nothing of it is remembered, joined or served. */
  get isInvalidated(): boolean {
    return this.#isInvalidated;
  }

  invalidate(): void {
    this.#isInvalidated = true;
  }

  get isJoinable(): boolean {
    const ageMs = this.#parts.clock.nowMs() - this.#beganMs;
    return ageMs < this.backend.maxJoinAgeMs && !this.#isInvalidated;
  }

  /** Whether loading needs nothing from the source: the bytes are in memory, or arrived with the identity. */
  get isInMemory(): boolean {
    const arrivedWithIdentity =
      this.#loaded !== undefined && this.backend.source.identity === 'digest';
    return arrivedWithIdentity || this.#findCached() !== undefined;
  }

  /** Keeps the original until this work settles, even if all requests leave. */
  keepFor(work: Promise<unknown>): void {
    this.#controls.keep(work);
  }

  /** Runs a write to what is remembered, unless the original was purged since the work began. */
  commit<Result>(write: () => Result): Result | undefined {
    return this.#isInvalidated ? undefined : write();
  }

  /** Keeps bytes, a state or a result beyond this work, where those of the source are kept. */
  keep<Result>(write: () => Result): Result | undefined {
    return this.backend.remembers ? this.commit(write) : undefined;
  }

  /** Remembers details of a state. */
  remember(etag: string, details: Partial<OriginalDetails>): void {
    this.commit(() => this.#parts.records.noteDetails(this.originKey, etag, details));
  }

  /** Remembers a fault of the original for a request: see `OriginalRecords.noteRefusal`. */
  refuse(resultKey: string | undefined, error: unknown): void {
    const key = this.backend.remembers ? resultKey : undefined;
    this.commit(() => this.#parts.records.noteRefusal(key, this.originKey, error));
  }

  /** Remembers that a render passed the deadline. */
  markSlow(costMs: number): void {
    this.commit(() => this.#parts.records.noteTimeout(this.originKey, costMs));
  }

  /** Remembers the error of a read. An original that was replaced meanwhile is forgotten with this work. */
  noteError(error: unknown): void {
    const { records } = this.#parts;
    this.keep(() =>
      isReplaced(error) ? records.forget(this.originKey) : records.noteError(this.originKey, error),
    );
    if (isReplaced(error)) this.#isInvalidated = true;
  }

  /**
   * Identifies the original: from the records if they are fresh, otherwise from the source.
   *
   * @returns the shared promise itself, which would otherwise keep one promise for each caller
   * @throws MediaError of the source; of a failure that is remembered, without contacting the source
   */
  identify(options: IdentifyOptions): Promise<IdentifiedOriginal> {
    if (this.#identified === undefined) {
      const known = this.#findKnown(options);
      if (known !== undefined) {
        this.#identity = known.identity;
        return Promise.resolve(known);
      }
      const { trace } = options;
      this.#identified = trace.stage('origin', async (details) => {
        details.originPart = 'state';
        const identified = await this.#identify(options);
        const { failure } = identified;
        if (failure instanceof MediaError) details.errorCode = failure.code;
        return identified;
      });
    }
    return this.#identified;
  }

  /**
   * Loads the original into memory that is accounted for; of a video only the beginning, and opens it by ranges.
   *
   * @returns the shared promise itself
   * @throws MediaError `OVERLOADED` if there is no room for it, `MEDIA_TOO_LARGE`, and what the source throws
   */
  load(): Promise<LoadedOriginal> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }

  /**
   * Opens the current state by ranges; its first block identifies it.
   *
   * @param leastBytes may be read whatever the bound of videos is
   * @throws MediaError of the source, `MEDIA_TOO_LARGE`
   */
  async openByRanges(leastBytes = 0) {
    const opened = await this.open(FIRST_BLOCK);
    const identity = this.noteFound(opened);
    const reader = this.createReader(identity.etag, opened, leastBytes);
    await reader.takeFirst(opened);
    return { identity, reader };
  }

  /**
   * Reads the facts of a video or of sound in this state, once for all requests.
   *
   * @param read gets the controls of this flight, so that it goes on while any request needs it
   */
  inspect(
    etag: string,
    read: (work: FlightControls & { readonly original: OriginalFlight }) => Promise<Inspected>,
  ): Promise<Inspected> {
    const facts = this.#parts.records.findDetails(this.originKey, etag)?.moving;
    if (facts !== undefined) return Promise.resolve({ facts, spentMs: 0 });
    this.#inspected ??= read({ ...this.#controls, original: this })
      .then((inspected) => {
        this.remember(etag, { moving: inspected.facts });
        return inspected;
      })
      .finally(() => {
        this.#inspected = undefined;
      });
    return this.#inspected;
  }

  /** @throws MediaError of the source */
  async open(range?: OpenOptions['range']): Promise<Opened> {
    return contentOf(this.backend, await this.#request({ range }));
  }

  /** Remembers the state that the source returned. */
  noteFound(opened: Pick<Opened, 'etag' | 'lastModified' | 'freshForMs' | 'validators'>) {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source has returned no tag of the original.');
    const identity = { etag, lastModified };
    this.#identity = identity;
    this.keep(() => this.#parts.records.noteFound(this.originKey, identity, opened));
    return identity;
  }

  /** Returns the reader of a state; the reader of another state is released. */
  createReader(
    etag: string,
    { sizeBytes = 0, rangeValidator }: Pick<Opened, 'sizeBytes' | 'rangeValidator'>,
    leastBytes = 0,
  ): OriginalReader {
    const { budget, maxRangeBytes } = this.#parts;
    // Another user of this work may still read by it.
    if (!this.backend.isExternal && this.#reader?.etag === etag) return this.#reader;
    this.#reader?.release();
    this.#reader = new OriginalReader(this, {
      etag,
      rangeValidator,
      sizeBytes,
      maxBytes: Math.max(maxRangeBytes, leastBytes),
      budget,
    });
    return this.#reader;
  }

  /** Opens the original, or has the source confirm the known state. */
  async #request(options: Pick<OpenOptions, 'known' | 'range'>): Promise<Opened | Unchanged> {
    const { backend, sourceKey, signal } = this;
    try {
      return await openBody(backend, sourceKey, { ...options, signal, isHeld: true });
    } catch (error) {
      this.noteError(error);
      throw error;
    }
  }

  /** Returns a fresh identity, or a recent failure of the source, from the records. */
  #findKnown({ hasResult }: IdentifyOptions): IdentifiedOriginal | undefined {
    const { records } = this.#parts;
    const fresh = records.findFresh(this.originKey);
    if (fresh !== undefined) return { identity: fresh, contactedOrigin: false };
    const { withResult, withoutResult } = this.backend.failedForMs;
    const failure = this.#findFailure(hasResult ? withResult : withoutResult);
    if (failure === undefined) return undefined;
    const { identity } = records.findLast(this.originKey);
    if (identity === undefined || ownUrlOf(failure) !== undefined) throw failure;
    return { identity, contactedOrigin: false, failure };
  }

  #findFailure(periodMs: number): MediaError | undefined {
    return this.#parts.records.findFailure(this.originKey, periodMs, this.backend);
  }

  async #identify({ isIdentityEnough, trace }: IdentifyOptions): Promise<IdentifiedOriginal> {
    try {
      const identity = await (this.backend.source.identity === 'tag'
        ? this.#identifyByTag(isIdentityEnough)
        : trace.stage('fetch', (details) => this.#identifyByBytes(isIdentityEnough, details)));
      return { identity, contactedOrigin: true };
    } catch (failure) {
      const { identity } = this.#parts.records.findLast(this.originKey);
      if (!isOriginFailure(failure) || identity === undefined) throw failure;
      // The site has not failed: it redirects to an original of ours now.
      if (ownUrlOf(failure) !== undefined) throw failure;
      this.#identity = identity;
      return { identity, contactedOrigin: true, failure };
    }
  }

  async #identifyByTag(isIdentityEnough: boolean): Promise<OriginalIdentity> {
    const loads = !isIdentityEnough && this.#parts.cache.get(this.originKey) === undefined;
    const range = isVideoName(this.originKey) ? FIRST_BLOCK : undefined;
    const opened = await this.open(loads ? range : FIRST_BYTE);
    if (loads) this.#opened = opened;
    else discard(this.backend, opened);
    return this.noteFound(opened);
  }

  async #identifyByBytes(
    isIdentityEnough: boolean,
    details: StageDetails,
  ): Promise<OriginalIdentity> {
    const { cache, records } = this.#parts;
    const { identity: last, validators } = records.findLast(this.originKey);
    const hasBytes = last !== undefined && cache.get(this.originKey)?.etag === last.etag;
    const known = isIdentityEnough || hasBytes ? validators : undefined;
    const range = this.#isLikelyVideo(last) ? FIRST_BLOCK : undefined;
    const opened = await this.#request({ known, range });
    details.unchanged = opened.body === undefined;
    if (opened.body !== undefined) {
      this.#loaded = loadBody(this, this.#parts, opened, range);
      const loaded = await this.#loaded;
      const { etag, lastModified } = loaded;
      if ('bytes' in loaded) details.bytes = loaded.bytes.byteLength;
      return { etag, lastModified };
    }
    if (last === undefined) throw new Error('Nothing was known that could be unchanged.');
    return this.noteFound({ ...last, validators, freshForMs: opened.freshForMs });
  }

  async #load(): Promise<LoadedOriginal> {
    const { budget, meter, records } = this.#parts;
    const { backend, signal } = this;
    signal.throwIfAborted();
    const cached = this.#findCached();
    meter.count(cached === undefined ? 'cacheMisses' : 'cacheHits', 'originals');
    if (cached !== undefined) return { ...budget.reserve(cached.bytes.byteLength), ...cached };
    if (this.#opened !== undefined) return loadBody(this, this.#parts, this.#opened);
    const identity = this.#identity;
    const isVideo = this.#isLikelyVideo(identity);
    const failure = this.#findFailure(backend.failedForMs.withoutResult);
    if (failure !== undefined && (backend.isExternal || !isVideo)) throw failure;
    const videoBytes = identity && records.findDetails(this.originKey, identity.etag)?.videoBytes;
    if (identity !== undefined && videoBytes !== undefined && !backend.isExternal) {
      const reader = this.createReader(identity.etag, { sizeBytes: videoBytes });
      return videoOf(this, identity, reader);
    }
    const range = isVideo ? FIRST_BLOCK : undefined;
    return loadBody(this, this.#parts, await this.open(range), range);
  }

  /** Whether an original is a video as far as is known before it is opened: a wrong guess costs one more read. */
  #isLikelyVideo(identity: OriginalIdentity | undefined): boolean {
    const { backend, originKey, sourceKey } = this;
    const name = backend.isExternal ? readUrl(sourceKey)?.pathname : originKey;
    if (isVideoName(name) || identity === undefined) return isVideoName(name);
    if (backend.isExternal) return !isDigest(backend, identity.etag);
    return this.#parts.records.findDetails(originKey, identity.etag)?.videoBytes !== undefined;
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#parts.cache.get(this.originKey);
    return cached !== undefined && cached.etag === this.#identity?.etag ? cached : undefined;
  }

  #release(): void {
    this.#reader?.release();
    this.#loaded?.then(
      (original) => original.release(),
      () => undefined,
    );
  }
}
