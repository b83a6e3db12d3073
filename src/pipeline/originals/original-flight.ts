import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import { isVideoName } from '../../contract/media-request.ts';
import type { AvMetadata } from '../../formats/video/av-metadata.ts';
import type { CachedOriginal, Opened, OriginalIdentity } from '../ports.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { Services } from '../services.ts';
import type { FlightControls } from '../single-flight.ts';
import { localUrlOf } from '../site-failure.ts';
import type { OriginalLocation } from './backend.ts';
import { freeBytes } from './free-bytes.ts';
import { type LoadedOriginal, loadBody, videoOf } from './load-original.ts';
import { discard } from './open-body.ts';
import { OriginalReader } from './original-reader.ts';
import { type IdentifiedOriginal, RememberedOriginal } from './remembered-original.ts';
import { FIRST_BLOCK } from './sequential-body.ts';

/** Metadata of a video or audio file, and the milliseconds in a slot to read them. */
export interface Inspected {
  readonly metadata: AvMetadata;
  readonly spentMs: number;
}

/** Range to request for the identity of an original. A HEAD request would lack S3's reason for a failure. */
const FIRST_BYTE = { first: 0, last: 0 } as const;

/**
 * Work on one original, shared by all requests for it. The first call of each method contacts the source if necessary;
 * later calls share its promise. `load` continues the body that `identify` opened. All findings are remembered through
 * this class, which drops writes after a purge.
 */
export class OriginalFlight extends RememberedOriginal {
  readonly #controls: FlightControls;
  readonly #beganMs: number;
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
    super(services, location, controls.signal);
    this.#controls = controls;
    this.#beganMs = services.clock.nowMs();
    this.signal.addEventListener('abort', () => this.#free(), { once: true });
  }

  get isJoinable(): boolean {
    const ageMs = this.services.clock.nowMs() - this.#beganMs;
    return ageMs < this.backend.maxJoinAgeMs && !this.isInvalidated;
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

  /**
   * Identifies the original from fresh records, otherwise by its source.
   *
   * @param need with `identity`, starts no transfer that might be aborted
   * @param hasResult whether an older result is in memory
   * @returns the shared promise itself; it would retain each promise derived from it
   * @throws MediaError of the source, also a remembered one
   */
  identify(
    trace: RequestTrace,
    need: 'identity' | 'bytes',
    hasResult = false,
  ): Promise<IdentifiedOriginal> {
    if (this.#identified === undefined) {
      const known = this.findKnown(hasResult);
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

  /** Makes the garbage collector free the bytes, instead of the end of this work. */
  keepBytes(): void {
    this.#areBytesKept = true;
  }

  /** Reads the metadata of a state of a video or audio file once for all requests, which keep the read alive. */
  inspect(
    etag: string,
    read: (work: FlightControls & { readonly original: OriginalFlight }) => Promise<Inspected>,
  ): Promise<Inspected> {
    const metadata = this.services.records.findDetails(this.originKey, etag)?.av;
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

  /** Remembers the state of a response. */
  noteFound(opened: Pick<Opened, 'etag' | 'lastModified' | 'freshForMs' | 'validators'>) {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source returned no tag of the original.');
    const identity = { etag, lastModified };
    this.#identity = identity;
    this.commitIfRemembered(() =>
      this.services.records.noteFound(this.originKey, identity, opened),
    );
    return identity;
  }

  /** Returns the reader of a state, and frees the reader of another one. */
  createReader(
    etag: string,
    { sizeBytes = 0, rangeValidator }: Pick<Opened, 'sizeBytes' | 'rangeValidator'>,
    minLimitBytes = 0,
  ): OriginalReader {
    const { originalsBudget: budget, maxRangeBytes } = this.services;
    // Another request may use this reader.
    if (!this.backend.isExternal && this.#reader?.etag === etag) return this.#reader;
    this.#reader?.free();
    const maxBytes = Math.max(maxRangeBytes, minLimitBytes);
    const state = { etag, rangeValidator, sizeBytes, maxBytes, budget };
    this.#reader = new OriginalReader(this, state);
    return this.#reader;
  }

  async #identify(trace: RequestTrace, need: 'identity' | 'bytes'): Promise<IdentifiedOriginal> {
    try {
      const identity = await (this.backend.source.identity === 'tag'
        ? this.#identifyByTag(need)
        : trace.stage('fetch', (details) => this.#identifyByBytes(need, details)));
      return { identity, contactedOrigin: true };
    } catch (failure) {
      const { identity } = this.services.records.findLast(this.originKey);
      if (!isOriginFailure(failure) || identity === undefined) throw failure;
      // The site did not fail: it now redirects to a local URL.
      if (localUrlOf(failure) !== undefined) throw failure;
      this.#identity = identity;
      return { identity, contactedOrigin: true, failure };
    }
  }

  async #identifyByTag(need: 'identity' | 'bytes'): Promise<OriginalIdentity> {
    const loads = need === 'bytes' && this.cached === undefined;
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
    const { identity: last, validators } = this.services.records.findLast(this.originKey);
    const hasBytes = last !== undefined && this.cached?.etag === last.etag;
    const known = need === 'identity' || hasBytes ? validators : undefined;
    const range = this.isLikelyVideo(last) ? FIRST_BLOCK : undefined;
    const opened = await this.request({ known, range });
    details.unchanged = opened.body === undefined;
    if (opened.body !== undefined) {
      this.#loaded = loadBody(this, this.services, opened, range);
      const loaded = await this.#loaded;
      const { etag, lastModified } = loaded;
      if ('bytes' in loaded) details.bytes = loaded.bytes.byteLength;
      return { etag, lastModified };
    }
    if (last === undefined) throw new Error('The source reported no change of an unknown state.');
    return this.noteFound({ ...last, validators, freshForMs: opened.freshForMs });
  }

  async #load(): Promise<LoadedOriginal> {
    const { originalsBudget, meter, records } = this.services;
    const { backend, signal } = this;
    signal.throwIfAborted();
    const cached = this.#findCached();
    meter.count(cached === undefined ? 'cacheMisses' : 'cacheHits', 'originals');
    if (cached !== undefined)
      return { ...originalsBudget.reserve(cached.bytes.byteLength), ...cached, isExclusive: false };
    if (this.#opened !== undefined) return loadBody(this, this.services, this.#opened);
    const identity = this.#identity;
    const isVideo = this.isLikelyVideo(identity);
    const failure = this.findFailure(backend.failedForMs.withoutResult);
    if (failure !== undefined && (backend.isExternal || !isVideo)) throw failure;
    const videoBytes = identity && records.findDetails(this.originKey, identity.etag)?.videoBytes;
    if (identity !== undefined && videoBytes !== undefined && !backend.isExternal) {
      return videoOf(this, identity, this.createReader(identity.etag, { sizeBytes: videoBytes }));
    }
    const range = isVideo ? FIRST_BLOCK : undefined;
    return loadBody(this, this.services, await this.open(range), range);
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.cached;
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
