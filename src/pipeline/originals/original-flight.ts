import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import { readUrl } from '../../contract/external-url.ts';
import { isVideoName } from '../../contract/media-request.ts';
import type { AvMetadata } from '../../formats/video/av-metadata.ts';
import type { CachedOriginal, Opened, OpenOptions, OriginalIdentity, Unchanged } from '../ports.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { Services } from '../services.ts';
import type { FlightControls } from '../single-flight.ts';
import { localUrlOf } from '../site-failure.ts';
import type { Backend, OriginalLocation } from './backend.ts';
import { isDigest } from './digests.ts';
import { freeBytes } from './free-bytes.ts';
import { type LoadedOriginal, loadBody, videoOf } from './load-original.ts';
import { contentOf, discard, openBody } from './open-body.ts';
import { FIRST_BLOCK, isReplaced, OriginalReader } from './original-reader.ts';
import type { OriginalDetails } from './records.ts';

export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  readonly contactedOrigin: boolean;
  /** Error of a source that cannot confirm the identity; only existing results may then be served. */
  readonly failure?: unknown;
}

/** Metadata of a video or audio file, and the milliseconds in a slot to read them. */
export interface Inspected {
  readonly metadata: AvMetadata;
  readonly spentMs: number;
}

/** Range that identifies an original. Not a HEAD, since S3 omits the reason when a HEAD fails. */
const FIRST_BYTE = { first: 0, last: 0 } as const;

/**
 * Work on one original, shared by all requests for it. The first call of each method contacts the source if necessary;
 * later calls share its promise. `load` continues the body that `identify` opened. All findings are remembered through
 * this class, which drops writes after a purge.
 */
export class OriginalFlight implements OriginalLocation {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
  /** Aborts when no request needs the original. */
  readonly signal: AbortSignal;
  readonly #services: Services;
  readonly #controls: FlightControls;
  readonly #beganMs: number;
  #isInvalidated = false;
  #identity: OriginalIdentity | undefined;
  /** Unread body that was opened for the identity. */
  #opened: Opened | undefined;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #loaded: Promise<LoadedOriginal> | undefined;
  /** Whether the bytes may still be used when this work ends. */
  #areBytesKept = false;
  #inspected: Promise<Inspected> | undefined;
  /** Reader of the current state; requests share its blocks. */
  #reader: OriginalReader | undefined;

  constructor(services: Services, location: OriginalLocation, controls: FlightControls) {
    this.backend = location.backend;
    this.originKey = location.originKey;
    this.sourceKey = location.sourceKey;
    this.signal = controls.signal;
    this.#services = services;
    this.#controls = controls;
    this.#beganMs = services.clock.nowMs();
    this.signal.addEventListener('abort', () => this.#free(), { once: true });
  }

  /** Whether the original was purged since the work began; nothing of it is then remembered, joined or served. */
  get isInvalidated(): boolean {
    return this.#isInvalidated;
  }

  invalidate(): void {
    this.#isInvalidated = true;
  }

  get isJoinable(): boolean {
    const ageMs = this.#services.clock.nowMs() - this.#beganMs;
    return ageMs < this.backend.maxJoinAgeMs && !this.#isInvalidated;
  }

  /** Whether `load` needs no request: the bytes are in memory, or arrived with the identity. */
  get isInMemory(): boolean {
    const arrivedWithIdentity =
      this.#loaded !== undefined && this.backend.source.identity === 'digest';
    return arrivedWithIdentity || this.#findCached() !== undefined;
  }

  keepAlive(work: Promise<unknown>): void {
    this.#controls.keepAlive(work);
  }

  /** Runs a write, unless the original was purged since. */
  commit<Result>(write: () => Result): Result | undefined {
    return this.#isInvalidated ? undefined : write();
  }

  /** Runs a write like `commit`, if the backend caches. */
  commitIfRemembered<Result>(write: () => Result): Result | undefined {
    return this.backend.remembers ? this.commit(write) : undefined;
  }

  rememberDetails(etag: string, details: Partial<OriginalDetails>): void {
    this.commit(() => this.#services.records.noteDetails(this.originKey, etag, details));
  }

  /** Remembers a failure that the original caused (`Refusals.noteRefusal`). */
  refuse(resultKey: string | undefined, error: unknown): void {
    const key = this.backend.remembers ? resultKey : undefined;
    this.commit(() => this.#services.refusals.noteRefusal(key, this.originKey, error));
  }

  /** Remembers the error of a read. If the original was replaced, forgets it and invalidates this work. */
  noteError(error: unknown): void {
    const { records, refusals } = this.#services;
    if (!isReplaced(error)) {
      this.commitIfRemembered(() => records.noteError(this.originKey, error));
      return;
    }
    this.commitIfRemembered(() => {
      records.forget(this.originKey);
      refusals.forget(this.originKey);
    });
    this.#isInvalidated = true;
  }

  /**
   * Identifies the original from fresh records, otherwise by its source.
   *
   * @param need with `identity`, starts no transfer that might be aborted
   * @param hasResult whether an older result is in memory
   * @returns the shared promise itself, since it would retain a derived promise for each caller
   * @throws MediaError of the source, also a remembered one
   */
  identify(
    trace: RequestTrace,
    need: 'identity' | 'bytes',
    hasResult = false,
  ): Promise<IdentifiedOriginal> {
    if (this.#identified === undefined) {
      const known = this.#findKnown(hasResult);
      if (known !== undefined) {
        this.#identity = known.identity;
        return Promise.resolve(known);
      }
      this.#identified = trace.stage('origin', async (details) => {
        details.originPart = 'state';
        const identified = await this.#identify(trace, need);
        const { failure } = identified;
        if (failure instanceof MediaError) details.errorCode = failure.code;
        return identified;
      });
    }
    return this.#identified;
  }

  /** Loads an image, or opens a video by ranges. @throws MediaError `OVERLOADED`, `MEDIA_TOO_LARGE`, of the source */
  load(): Promise<LoadedOriginal> {
    this.keepBytes();
    return this.borrow();
  }

  /** Loads like `load`, for a caller that uses the bytes only until it leaves: the end of this work may free them. */
  borrow(): Promise<LoadedOriginal> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }

  /** Leaves the bytes to the garbage collector. */
  keepBytes(): void {
    this.#areBytesKept = true;
  }

  /**
   * Reads the metadata of this state of a video or audio file once for all requests, under the controls of this flight.
   */
  inspect(
    etag: string,
    read: (work: FlightControls & { readonly original: OriginalFlight }) => Promise<Inspected>,
  ): Promise<Inspected> {
    const metadata = this.#services.records.findDetails(this.originKey, etag)?.av;
    if (metadata !== undefined) return Promise.resolve({ metadata, spentMs: 0 });
    this.#inspected ??= read({ ...this.#controls, original: this })
      .then((inspected) => {
        this.rememberDetails(etag, { av: inspected.metadata });
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

  /** Remembers the state of a response. */
  noteFound(opened: Pick<Opened, 'etag' | 'lastModified' | 'freshForMs' | 'validators'>) {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source returned no tag of the original.');
    const identity = { etag, lastModified };
    this.#identity = identity;
    this.commitIfRemembered(() =>
      this.#services.records.noteFound(this.originKey, identity, opened),
    );
    return identity;
  }

  /** Returns the reader of a state, and frees the reader of another one. */
  createReader(
    etag: string,
    { sizeBytes = 0, rangeValidator }: Pick<Opened, 'sizeBytes' | 'rangeValidator'>,
    minLimitBytes = 0,
  ): OriginalReader {
    const { originalsBudget: budget, maxRangeBytes } = this.#services;
    // Another request may use this reader.
    if (!this.backend.isExternal && this.#reader?.etag === etag) return this.#reader;
    this.#reader?.free();
    const maxBytes = Math.max(maxRangeBytes, minLimitBytes);
    const state = { etag, rangeValidator, sizeBytes, maxBytes, budget };
    this.#reader = new OriginalReader(this, state);
    return this.#reader;
  }

  /** Opens the original, or confirms the known state. */
  async #request(options: Pick<OpenOptions, 'known' | 'range'>): Promise<Opened | Unchanged> {
    const { backend, sourceKey, signal } = this;
    try {
      return await openBody(backend, sourceKey, { ...options, signal, isBuffered: true });
    } catch (error) {
      this.noteError(error);
      throw error;
    }
  }

  /** Returns a fresh identity or a recent failure from the records. */
  #findKnown(hasResult: boolean): IdentifiedOriginal | undefined {
    const { records } = this.#services;
    const fresh = records.findFresh(this.originKey);
    if (fresh !== undefined) return { identity: fresh, contactedOrigin: false };
    const { withResult, withoutResult } = this.backend.failedForMs;
    const failure = this.#findFailure(hasResult ? withResult : withoutResult);
    if (failure === undefined) return undefined;
    const { identity } = records.findLast(this.originKey);
    if (identity === undefined || localUrlOf(failure) !== undefined) throw failure;
    return { identity, contactedOrigin: false, failure };
  }

  #findFailure(periodMs: number): MediaError | undefined {
    return this.#services.records.findFailure(this.originKey, periodMs, this.backend);
  }

  async #identify(trace: RequestTrace, need: 'identity' | 'bytes'): Promise<IdentifiedOriginal> {
    try {
      const identity = await (this.backend.source.identity === 'tag'
        ? this.#identifyByTag(need)
        : trace.stage('fetch', (details) => this.#identifyByBytes(need, details)));
      return { identity, contactedOrigin: true };
    } catch (failure) {
      const { identity } = this.#services.records.findLast(this.originKey);
      if (!isOriginFailure(failure) || identity === undefined) throw failure;
      // The site did not fail: it now redirects to a local URL.
      if (localUrlOf(failure) !== undefined) throw failure;
      this.#identity = identity;
      return { identity, contactedOrigin: true, failure };
    }
  }

  async #identifyByTag(need: 'identity' | 'bytes'): Promise<OriginalIdentity> {
    const loads = need === 'bytes' && this.#cached === undefined;
    const range = isVideoName(this.originKey) ? FIRST_BLOCK : undefined;
    const opened = await this.open(loads ? range : FIRST_BYTE);
    if (loads) this.#opened = opened;
    else discard(this.backend, opened);
    return this.noteFound(opened);
  }

  async #identifyByBytes(
    need: 'identity' | 'bytes',
    details: StageDetails,
  ): Promise<OriginalIdentity> {
    const { identity: last, validators } = this.#services.records.findLast(this.originKey);
    const hasBytes = last !== undefined && this.#cached?.etag === last.etag;
    const known = need === 'identity' || hasBytes ? validators : undefined;
    const range = this.isLikelyVideo(last) ? FIRST_BLOCK : undefined;
    const opened = await this.#request({ known, range });
    details.unchanged = opened.body === undefined;
    if (opened.body !== undefined) {
      this.#loaded = loadBody(this, this.#services, opened, range);
      const loaded = await this.#loaded;
      const { etag, lastModified } = loaded;
      if ('bytes' in loaded) details.bytes = loaded.bytes.byteLength;
      return { etag, lastModified };
    }
    if (last === undefined) throw new Error('The source confirmed a state that was not known.');
    return this.noteFound({ ...last, validators, freshForMs: opened.freshForMs });
  }

  async #load(): Promise<LoadedOriginal> {
    const { originalsBudget, meter, records } = this.#services;
    const { backend, signal } = this;
    signal.throwIfAborted();
    const cached = this.#findCached();
    meter.count(cached === undefined ? 'cacheMisses' : 'cacheHits', 'originals');
    if (cached !== undefined)
      return { ...originalsBudget.reserve(cached.bytes.byteLength), ...cached, isExclusive: false };
    if (this.#opened !== undefined) return loadBody(this, this.#services, this.#opened);
    const identity = this.#identity;
    const isVideo = this.isLikelyVideo(identity);
    const failure = this.#findFailure(backend.failedForMs.withoutResult);
    if (failure !== undefined && (backend.isExternal || !isVideo)) throw failure;
    const videoBytes = identity && records.findDetails(this.originKey, identity.etag)?.videoBytes;
    if (identity !== undefined && videoBytes !== undefined && !backend.isExternal) {
      return videoOf(this, identity, this.createReader(identity.etag, { sizeBytes: videoBytes }));
    }
    const range = isVideo ? FIRST_BLOCK : undefined;
    return loadBody(this, this.#services, await this.open(range), range);
  }

  /** Guesses whether the original is a video before it is opened; a wrong guess costs one more read. */
  isLikelyVideo(identity: OriginalIdentity | undefined): boolean {
    const { backend, originKey, sourceKey } = this;
    const name = backend.isExternal ? readUrl(sourceKey)?.pathname : originKey;
    if (isVideoName(name) || identity === undefined) return isVideoName(name);
    if (backend.isExternal) return !isDigest(backend, identity.etag);
    const { records } = this.#services;
    return records.findDetails(originKey, identity.etag)?.videoBytes !== undefined;
  }

  get #cached(): CachedOriginal | undefined {
    return this.#services.caches.originals.get(this.originKey);
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#cached;
    return cached !== undefined && cached.etag === this.#identity?.etag ? cached : undefined;
  }

  #free(): void {
    this.#reader?.free();
    this.#loaded?.then(
      (original) => {
        original.free();
        if (this.#areBytesKept || 'reader' in original || !original.isExclusive) return;
        freeBytes(original.bytes as Uint8Array<ArrayBuffer>);
      },
      () => undefined,
    );
  }
}
