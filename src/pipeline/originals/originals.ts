import { createHash } from 'node:crypto';
import type { Span } from '@opentelemetry/api';
import { MediaError } from '../../contract/errors.ts';
import { isVideoName, type MediaRequest } from '../../contract/media-request.ts';
import { isDecodable } from '../../formats/read-image-facts.ts';
import { sniffMoving } from '../../formats/video/sniff-moving.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import type { MemoryCache } from '../memory-cache.ts';
import type { Meter } from '../meter.ts';
import {
  type CachedOriginal,
  type Clock,
  type Opened,
  type OpenOptions,
  type OriginalIdentity,
  ReplacedMeanwhile,
  type Unchanged,
} from '../ports.ts';
import { noteErrorCode, type RequestTrace } from '../request-trace.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import { ownUrlOf } from '../site-failure.ts';
import type { Backend } from './backend.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';
import { contentOf, discard, holdBody, isOriginFailure, openBody } from './open-body.ts';
import { BLOCK_BYTES, FIRST_BLOCK, OriginalReader } from './original-reader.ts';
import type { OriginalDetails, OriginalRecords } from './records.ts';

/** Parts of `Originals`. */
export interface OriginalsParts {
  readonly storage: Backend;
  /** `undefined`: media of other sites are not served. */
  readonly sites: Backend | undefined;
  readonly records: OriginalRecords;
  /** Bounds the memory of originals in use. */
  readonly budget: MemoryBudget;
  /** Whether the SHA-256 of what is read whole is remembered: originals may be blocked by it. */
  readonly keepsDigests: boolean;
  /** Originals that were read lately, by origin key. */
  readonly cache: MemoryCache<CachedOriginal>;
  /** Most bytes that are read of one original by ranges. */
  readonly maxRangeBytes: number;
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
export type HeldImage = CachedOriginal & Reservation;

/** A video, of which ranges are read until its last user has left. */
export type HeldVideo = OriginalIdentity & Reservation & { readonly reader: OriginalReader };

export type HeldOriginal = HeldImage | HeldVideo;

/** Facts of a video or of sound, and the time that it took to read them, in milliseconds. */
export interface Inspected {
  readonly facts: MovingFacts;
  readonly spentMs: number;
}

/** Containers of videos that have posters (contract §12). */
const VIDEOS: ReadonlySet<string | undefined> = new Set(['mp4', 'mov', 'webm', 'matroska']);

/** The cause of an error of a read that ended since the original is a video. */
class VideoFound extends Error {
  override readonly name = 'VideoFound';
}

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
  #reader: OriginalReader | undefined;
  #inspecting: Promise<Inspected> | undefined;

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
   * Reads the original to its end, into memory that is accounted for; of a video only the beginning, and opens it by
   * ranges.
   *
   * @throws MediaError `OVERLOADED` if there is no room for it, and what the source throws
   */
  read(): Promise<HeldOriginal> {
    this.#held ??= this.#read();
    return this.#held;
  }

  /**
   * Opens the current state of the original by ranges; its first block identifies it.
   *
   * @param leastBytes may be read whatever the bound of videos is
   * @throws MediaError of the source, `MEDIA_TOO_LARGE`
   */
  async openByRanges(
    leastBytes = 0,
  ): Promise<{ identity: OriginalIdentity; reader: OriginalReader }> {
    const opened = contentOf(this.#backend, await this.#ask({ range: FIRST_BLOCK }));
    const identity = this.#noteFound(opened);
    this.#identity = identity;
    const reader = this.#createReader(identity, opened.sizeBytes, leastBytes);
    await reader.takeFirst(opened);
    return { identity, reader };
  }

  /**
   * Reads the facts of a video or of sound in this state, once for all requests.
   *
   * @param read gets the controls of this flight, so that it goes on while any request needs it
   */
  async inspect(
    etag: string,
    read: (work: FlightControls & { readonly original: Original }) => Promise<Inspected>,
  ): Promise<Inspected> {
    const { records } = this.#parts;
    const facts = records.findDetails(this.originKey, etag)?.moving;
    if (facts !== undefined) return { facts, spentMs: 0 };
    this.#inspecting ??= read({ ...this.#flight, original: this }).finally(() => {
      this.#inspecting = undefined;
    });
    const inspected = await this.#inspecting;
    const { facts: moving } = inspected;
    this.noteDetails(etag, { moving });
    return inspected;
  }

  /**
   * Returns the SHA-256 of the identified original, hexadecimal, from the records or by a whole read; `undefined` for one
   * that is too large for that.
   */
  async digest(identity: OriginalIdentity): Promise<string | undefined> {
    const { records } = this.#parts;
    const known = records.findSha256(this.originKey, identity.etag);
    if (known !== undefined) return known;
    const { maxOriginalBytes } = this.#backend;
    try {
      const held = await this.read();
      if ('bytes' in held) return this.#noteSha256(held.etag, sha256Of(held.bytes));
      if (held.reader.sizeBytes > maxOriginalBytes) return undefined;
      return this.#noteSha256(held.etag, await held.reader.hash());
    } catch (error) {
      if (error instanceof MediaError && error.code === 'MEDIA_TOO_LARGE') return undefined;
      throw error;
    }
  }

  /** Computes the SHA-256 of an original of any size, and remembers it. */
  async hashWhole(): Promise<void> {
    const { identity, reader } = await this.openByRanges();
    this.#noteSha256(identity.etag, await reader.hash());
  }

  /** Remembers details of a state, unless the original was purged since. */
  noteDetails(etag: string, details: Partial<OriginalDetails>): void {
    if (!this.isOutdated) this.#parts.records.noteDetails(this.originKey, etag, details);
  }

  #noteSha256(etag: string, sha256: string): string {
    this.noteDetails(etag, { sha256 });
    return sha256;
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
    if (isWhole && isVideoName(this.originKey)) return (await this.openByRanges()).identity;
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
      const held = await this.#held;
      if (!('bytes' in held)) throw new Error('Media of other sites are held whole.');
      const { etag, lastModified, bytes } = held;
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
    const video = await this.#readKnownVideo();
    if (video !== undefined) return video;
    const failure = this.#findFailure(this.#backend.failedForMs.withoutResult);
    if (failure !== undefined) throw failure;
    return this.#hold(contentOf(this.#backend, await this.#ask({})));
  }

  /** Reads what was opened. */
  async #hold(opened: Opened): Promise<HeldOriginal> {
    const { budget, cache } = this.#parts;
    const { isForeign, source } = this.#backend;
    const judge = isForeign ? requireImage : refuseVideo;
    try {
      const held = await holdBody(this.#backend, opened, budget, this.#flight.signal, judge);
      if (!isForeign) refuseVideo(held.bytes, held);
      const isByDigest = source.identity === 'digest';
      const identity = this.#noteFound(isByDigest ? digested(opened, held.bytes) : opened);
      this.#identity = identity;
      if (!this.isOutdated) cache.set(this.originKey, { ...identity, bytes: held.bytes });
      if (this.#parts.keepsDigests) this.#noteSha256(identity.etag, sha256Of(held.bytes));
      return { ...held, ...identity };
    } catch (error) {
      const video = mayBeOfVideo(error) && !isForeign ? await this.#openVideo(opened) : undefined;
      if (video !== undefined) return video;
      this.#noteError(error);
      throw error;
    }
  }

  /** Opens by ranges what is known to be a video, or is named so. */
  async #readKnownVideo(): Promise<HeldVideo | undefined> {
    const identity = this.#identity;
    if (this.#backend.isForeign || identity === undefined) return undefined;
    const videoBytes = this.#parts.records.findDetails(this.originKey, identity.etag)?.videoBytes;
    if (videoBytes !== undefined) {
      return this.#holdVideo(identity, this.#reader ?? this.#createReader(identity, videoBytes));
    }
    if (!isVideoName(this.originKey)) return undefined;
    if (this.#reader !== undefined) return this.#tryVideo(identity, this.#reader);
    const opened = await this.openByRanges();
    return this.#tryVideo(opened.identity, opened.reader);
  }

  /** Opens an original by ranges whose read as a whole has ended; returns `undefined` if it is not a video. */
  #openVideo(opened: Opened): Promise<HeldVideo | undefined> {
    const identity = this.#noteFound(opened);
    return this.#tryVideo(identity, this.#createReader(identity, opened.sizeBytes));
  }

  async #tryVideo(
    identity: OriginalIdentity,
    reader: OriginalReader,
  ): Promise<HeldVideo | undefined> {
    const beginning = await reader.read(0, BLOCK_BYTES, this.#flight.signal);
    if (isVideo(beginning)) return this.#holdVideo(identity, reader);
    reader.release();
    this.#reader = undefined;
    return undefined;
  }

  #holdVideo(identity: OriginalIdentity, reader: OriginalReader): HeldVideo {
    this.noteDetails(identity.etag, { videoBytes: reader.sizeBytes });
    const nothing = (): void => undefined;
    // The reader accounts for its own memory.
    return { ...identity, reader, assign: nothing, grow: nothing, release: () => reader.release() };
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

  #createReader({ etag }: OriginalIdentity, sizeBytes = 0, leastBytes = 0): OriginalReader {
    const { signal } = this.#flight;
    const { budget, maxRangeBytes } = this.#parts;
    const maxBytes = Math.max(maxRangeBytes, leastBytes);
    this.#reader?.release();
    this.#reader = new OriginalReader(
      {
        ...{ backend: this.#backend, sourceKey: this.#sourceKey, etag, sizeBytes, signal },
        onFailure: (error) => this.#noteError(error),
      },
      { budget, maxBytes },
    );
    return this.#reader;
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
    if (this.isOutdated) return;
    const isReplaced = error instanceof MediaError && error.cause instanceof ReplacedMeanwhile;
    if (isReplaced) this.#parts.records.forget(this.originKey);
    else this.#parts.records.noteError(this.originKey, error);
  }

  #release(): void {
    this.#reader?.release();
    this.#held?.then(
      (original) => original.release(),
      () => undefined,
    );
  }
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function isVideo(beginning: Uint8Array): boolean {
  return VIDEOS.has(sniffMoving(beginning));
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` with the cause `VideoFound` */
function refuseVideo(beginning: Uint8Array, held?: Reservation): void {
  if (!isVideo(beginning)) return;
  held?.release();
  const cause = new VideoFound('A video is not read whole.');
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause });
}

/** The rest of a file that is not an image need not be fetched from another site. */
function requireImage(beginning: Uint8Array): void {
  if (!isDecodable(beginning)) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
}

/** Whether an original was not read whole since it is a video, or is too large, as videos may be. */
function mayBeOfVideo(error: unknown): boolean {
  if (!(error instanceof MediaError)) return false;
  return error.code === 'MEDIA_TOO_LARGE' || error.cause instanceof VideoFound;
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
  join(name: OriginalName) {
    return this.#flights.join(name.originKey, (flight) => this.begin(name, flight));
  }

  /** Begins work on an original that no request joins here; the work is over when its flight is. */
  begin(name: OriginalName, flight: FlightControls): Original {
    const original = new Original(this.#parts, name, flight);
    this.#underWay.add(original);
    flight.signal.addEventListener('abort', () => this.#underWay.delete(original), { once: true });
    return original;
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
