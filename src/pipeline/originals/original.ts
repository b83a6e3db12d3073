import { createHash } from 'node:crypto';
import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import { readUrl } from '../../contract/external-url.ts';
import { isVideoName } from '../../contract/media-request.ts';
import { isDecodable } from '../../formats/read-image-facts.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import { unlessAborted } from '../abort.ts';
import type { BlockGuard } from '../blocks/block-guard.ts';
import type { MemoryCache } from '../memory-cache.ts';
import type { Meter } from '../meter.ts';
import type { CachedOriginal, Clock, Opened, OriginalIdentity } from '../ports.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { FlightControls } from '../single-flight.ts';
import { ownUrlOf } from '../site-failure.ts';
import { type Backends, type OriginalName, placeOf } from './backend.ts';
import { type Digests, sha256Of } from './digests.ts';
import type { Reservation } from './memory-budget.ts';
import { discard, holdBody } from './open-body.ts';
import { type AccessParts, type HeldVideo, isVideo, OriginalAccess } from './original-access.ts';
import { FIRST_BLOCK } from './original-reader.ts';
import type { OriginalDetails } from './records.ts';

export interface OriginalParts extends Backends, AccessParts {
  readonly digests: Digests;
  /** Omit where nothing can be blocked; otherwise the SHA-256 of what is read whole is remembered. */
  readonly blocks: BlockGuard | undefined;
  /** Originals that were read lately, by origin key. */
  readonly cache: MemoryCache<CachedOriginal>;
  readonly clock: Clock;
  readonly meter: Pick<Meter, 'count'>;
}

/** Identity of an original, and how it became known. */
export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  readonly wasAsked: boolean;
  /** Error of a source that cannot confirm the identity: only results that exist already may be served. */
  readonly failure?: unknown;
}

/** State of an original whose bytes were checked; `sha256` in hexadecimal digits, if it is known. */
export interface CheckedOriginal extends OriginalIdentity {
  readonly sha256?: string | undefined;
}

interface IdentifyOptions {
  /** Whether the identity may suffice: then no transfer is begun that might have to be broken off. */
  readonly isIdentityEnough: boolean;
  /** Whether an older result is in memory. */
  readonly hasResult: boolean;
  readonly trace: RequestTrace;
}

/** An original in memory, until its last user has left. */
export type HeldImage = CachedOriginal & Reservation;

export type HeldOriginal = HeldImage | HeldVideo;

/** Facts of a video or of sound, and the time that it took to read them, in milliseconds. */
export interface Inspected {
  readonly facts: MovingFacts;
  readonly spentMs: number;
}

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
  readonly #parts: OriginalParts;
  readonly #access: OriginalAccess;
  readonly #flight: FlightControls;
  readonly #beganMs: number;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #held: Promise<HeldOriginal> | undefined;
  #identity: OriginalIdentity | undefined;
  /** The whole original, whose body was not read yet. */
  #opened: Opened | undefined;
  #inspecting: Promise<Inspected> | undefined;

  /** @param flight ends when no request needs the original any more */
  constructor(parts: OriginalParts, name: OriginalName, flight: FlightControls) {
    this.#parts = parts;
    this.#access = new OriginalAccess(placeOf(parts, name), parts, flight.signal);
    this.#flight = flight;
    this.#beganMs = parts.clock.nowMs();
    flight.signal.addEventListener('abort', () => this.#release(), { once: true });
  }

  get originKey(): string {
    return this.#access.originKey;
  }

  /** Whether the original was purged since the work began: then nothing of it is kept, joined or served. */
  get isOutdated(): boolean {
    return this.#access.isOutdated;
  }

  outdate(): void {
    this.#access.isOutdated = true;
  }

  get isJoinable(): boolean {
    const ageMs = this.#parts.clock.nowMs() - this.#beganMs;
    return ageMs < this.#access.backend.joinableForMs && !this.isOutdated;
  }

  /** Whether a read needs nothing from the source: the bytes are in memory, or came with the identity. */
  get isInMemory(): boolean {
    const cameAlong = this.#held !== undefined && this.#access.backend.source.identity === 'digest';
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
    // The shared promise itself: it would keep the promise that an `async` method makes for each caller.
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

  /** Identifies the original by its first block: see `OriginalAccess.openByRanges`. */
  async openByRanges(leastBytes?: number) {
    const opened = await this.#access.openByRanges(leastBytes);
    this.#identity = opened.identity;
    return opened;
  }

  /**
   * Reads the facts of a video or of sound in this state, once for all requests.
   *
   * @param read gets the controls of this flight, so that it goes on while any request needs it
   */
  inspect(
    etag: string,
    read: (work: FlightControls & { readonly original: Original }) => Promise<Inspected>,
  ): Promise<Inspected> {
    const facts = this.#access.records.findDetails(this.originKey, etag)?.moving;
    if (facts !== undefined) return Promise.resolve({ facts, spentMs: 0 });
    this.#inspecting ??= this.#inspectFirst(etag, read({ ...this.#flight, original: this }));
    return this.#inspecting;
  }

  async #inspectFirst(etag: string, reading: Promise<Inspected>): Promise<Inspected> {
    try {
      const inspected = await reading;
      this.noteDetails(etag, { moving: inspected.facts });
      return inspected;
    } finally {
      this.#inspecting = undefined;
    }
  }

  /**
   * Checks the bytes of a state against the blocks by SHA-256. An original whose digest is unknown is read whole; one that
   * is too large for that passes, and is hashed in the background.
   *
   * @returns the state whose bytes were checked: another one if the original was replaced meanwhile
   * @throws MediaError `UNAVAILABLE`, or `UNKNOWN_MEDIA` where the block is hidden; of the source; or `signal.reason`
   */
  async checkBytes(
    state: OriginalIdentity | HeldOriginal,
    signal: AbortSignal,
  ): Promise<CheckedOriginal> {
    const { blocks } = this.#parts;
    if (blocks?.judgesBytes !== true) return state;
    const checked = await unlessAborted(this.#digest(state), signal);
    blocks.checkDigest(checked.sha256);
    return checked;
  }

  async #digest(state: OriginalIdentity | HeldOriginal): Promise<CheckedOriginal> {
    const { etag, lastModified } = state;
    const { digests } = this.#parts;
    const access = this.#access;
    const { isForeign, maxOriginalBytes } = access.backend;
    // Of another site's video, each body that is rendered is checked itself.
    const known = this.#isDigest(etag)
      ? this.#noteSha256(etag, sha256OfIdentity(etag))
      : isForeign && 'reader' in state
        ? undefined
        : await digests.find(this.originKey, etag, access.signal);
    if (known !== undefined) return { etag, lastModified, sha256: known };
    try {
      const held = await this.read();
      const identity = { etag: held.etag, lastModified: held.lastModified };
      if ('bytes' in held) {
        return { ...identity, sha256: this.#noteSha256(held.etag, sha256Of(held.bytes)) };
      }
      if (held.reader.sizeBytes <= maxOriginalBytes && !held.reader.isCut) {
        return { ...identity, sha256: this.#noteSha256(held.etag, await held.reader.hash()) };
      }
      if (isForeign) return { ...identity, sha256: await this.#findLargeSha256(held) };
      digests.hashSoon(access);
      return identity;
    } catch (error) {
      if (!(error instanceof MediaError && error.code === 'MEDIA_TOO_LARGE')) throw error;
    }
    digests.hashSoon(access);
    return { etag, lastModified };
  }

  /** Finds the digest of another site's large video, which is otherwise hashed in the background. */
  async #findLargeSha256({ etag }: HeldVideo): Promise<string | undefined> {
    const { digests } = this.#parts;
    const { signal } = this.#access;
    const known = await digests.find(this.originKey, etag, signal);
    // Not before the poster is sent: what the background finds blocked begins the work anew, with a site that changes its tags for ever.
    const hash = (): void => digests.hashSoon(this.#access);
    if (known === undefined) signal.addEventListener('abort', hash, { once: true });
    return known;
  }

  /** Remembers details of a state, unless the original was purged since. */
  noteDetails(etag: string, details: Partial<OriginalDetails>): void {
    this.#access.noteDetails(etag, details);
  }

  #noteSha256(etag: string, sha256: string): string {
    // An identity that is a digest tells it after a restart, too.
    if (this.#isDigest(etag)) this.noteDetails(etag, { sha256 });
    else if (!this.isOutdated) this.#parts.digests.note(this.originKey, etag, sha256);
    return sha256;
  }

  /** Whether the identity of a state is the digest of its bytes; another site's video has a `stateOf`. */
  #isDigest(etag: string): boolean {
    return this.#access.backend.source.identity === 'digest' && !etag.startsWith('[');
  }

  /** Returns what the records tell: a fresh identity, or a failure of the source just now. */
  #findKnown({ hasResult }: IdentifyOptions): IdentifiedOriginal | undefined {
    const { records, backend } = this.#access;
    const fresh = records.findFresh(this.originKey);
    if (fresh !== undefined) return { identity: fresh, wasAsked: false };
    const { withResult, withoutResult } = backend.failedForMs;
    const failure = this.#access.findFailure(hasResult ? withResult : withoutResult);
    if (failure === undefined) return undefined;
    const { identity } = records.findLast(this.originKey);
    if (identity === undefined || ownUrlOf(failure) !== undefined) throw failure;
    return { identity, wasAsked: false, failure };
  }

  async #identify({ isIdentityEnough, trace }: IdentifyOptions): Promise<IdentifiedOriginal> {
    const { records, backend } = this.#access;
    try {
      this.#identity = await (backend.source.identity === 'tag'
        ? this.#identifyByTag(isIdentityEnough)
        : trace.stage('fetch', (details) => this.#identifyByBytes(isIdentityEnough, details)));
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
    const opened = await this.#access.open(isWhole ? undefined : FIRST_BYTE);
    if (isWhole) this.#opened = opened;
    else discard(this.#access.backend, opened);
    return this.#access.noteFound(opened);
  }

  async #identifyByBytes(
    isIdentityEnough: boolean,
    details: StageDetails,
  ): Promise<OriginalIdentity> {
    const { records } = this.#access;
    const { cache } = this.#parts;
    const { identity: last, validators } = records.findLast(this.originKey);
    const hasBytes = last !== undefined && cache.get(this.originKey)?.etag === last.etag;
    const known = isIdentityEnough || hasBytes ? validators : undefined;
    const range = this.#isLikelyVideo(last) ? FIRST_BLOCK : undefined;
    const opened = await this.#access.ask({ known, range });
    details.unchanged = opened.body === undefined;
    if (opened.body !== undefined) {
      this.#held = range === undefined ? this.#hold(opened) : this.#holdLikelyVideo(opened);
      const held = await this.#held;
      const { etag, lastModified } = held;
      if ('bytes' in held) details.bytes = held.bytes.byteLength;
      return { etag, lastModified };
    }
    if (last === undefined) throw new Error('Nothing was known that could be unchanged.');
    const { freshForMs } = opened;
    if (!this.isOutdated) records.noteFound(this.originKey, last, { validators, freshForMs });
    return last;
  }

  async #read(): Promise<HeldOriginal> {
    const { budget, meter } = this.#parts;
    const access = this.#access;
    access.signal.throwIfAborted();
    const cached = this.#findCached();
    meter.count(cached === undefined ? 'cacheMisses' : 'cacheHits', 'originals');
    if (cached !== undefined) return { ...budget.reserve(cached.bytes.byteLength), ...cached };
    if (this.#opened !== undefined) return this.#hold(this.#opened);
    const { isForeign, failedForMs } = access.backend;
    const failure = access.findFailure(failedForMs.withoutResult);
    if (failure !== undefined && isForeign) throw failure;
    const video = await this.#readVideo();
    if (video !== undefined) return video;
    if (failure !== undefined) throw failure;
    return this.#hold(await access.open());
  }

  /** Opens by ranges what is known to be a video, or is named so; returns `undefined` for all else. */
  async #readVideo(): Promise<HeldVideo | undefined> {
    const identity = this.#identity;
    const { backend, records } = this.#access;
    if (identity === undefined) return undefined;
    if (backend.isForeign) {
      const wasVideo = !this.#isDigest(identity.etag);
      return wasVideo ? this.#takeSiteVideo(await this.#access.open(FIRST_BLOCK)) : undefined;
    }
    const videoBytes = records.findDetails(this.originKey, identity.etag)?.videoBytes;
    if (videoBytes === undefined && !isVideoName(this.originKey)) return undefined;
    return this.#access.openVideo(identity, videoBytes);
  }

  async #hold(opened: Opened): Promise<HeldOriginal> {
    const { budget, cache, blocks } = this.#parts;
    const access = this.#access;
    const { isForeign, source } = access.backend;
    const judge = isForeign ? requireImage : refuseVideo;
    try {
      const held = await holdBody(access.backend, opened, budget, access.signal, judge);
      refuseVideo(held.bytes, held);
      const isByDigest = source.identity === 'digest';
      const identity = access.noteFound(isByDigest ? digested(opened, held.bytes) : opened);
      this.#identity = identity;
      if (!this.isOutdated) cache.set(this.originKey, { ...identity, bytes: held.bytes });
      if (blocks !== undefined) this.#noteSha256(identity.etag, sha256Of(held.bytes));
      return { ...held, ...identity };
    } catch (error) {
      const video =
        mayBeOfVideo(error, isForeign) &&
        (await (isForeign
          ? this.#takeSiteVideo(await access.open(FIRST_BLOCK))
          : access.reopen(access.noteFound(opened), opened.sizeBytes)));
      if (video) return video;
      access.noteError(error);
      throw error;
    }
  }

  /** Whether another site's original is known to be a video, or is named so. */
  #isLikelyVideo(last: OriginalIdentity | undefined): boolean {
    const wasVideo = last !== undefined && !this.#isDigest(last.etag);
    return wasVideo || isVideoName(readUrl(this.#access.sourceKey)?.pathname);
  }

  async #holdLikelyVideo(opened: Opened): Promise<HeldOriginal> {
    return (await this.#takeSiteVideo(opened)) ?? this.#hold(await this.#access.open());
  }

  async #takeSiteVideo(opened: Opened): Promise<HeldVideo | undefined> {
    const { maxOriginalBytes } = this.#access.backend;
    const isJudged = this.#parts.blocks?.judgesBytes === true;
    const video = await this.#access.takeSiteVideo(opened, isJudged ? maxOriginalBytes : 0);
    if (video !== undefined)
      this.#identity = { etag: video.etag, lastModified: video.lastModified };
    return video;
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#parts.cache.get(this.originKey);
    return cached?.etag === this.#identity?.etag ? cached : undefined;
  }

  #release(): void {
    this.#access.releaseReader();
    this.#held?.then(
      (original) => original.release(),
      () => undefined,
    );
  }
}

/** The identity of an original whose source has no tags is its SHA-256: see `digested`. */
function sha256OfIdentity(etag: string): string {
  return Buffer.from(etag, 'base64url').toString('hex');
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
  refuseVideo(beginning);
  if (!isDecodable(beginning)) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
}

/**
 * Whether an original was not read whole since it is a video, or is too large, as videos may be. Another site's is checked
 * by its first bytes before its size.
 */
function mayBeOfVideo(error: unknown, isForeign: boolean): boolean {
  if (!(error instanceof MediaError)) return false;
  return (!isForeign && error.code === 'MEDIA_TOO_LARGE') || error.cause instanceof VideoFound;
}

/** Replaces the tag by a digest of the bytes, for sources whose own tags may mean nothing. */
function digested(opened: Opened, bytes: Uint8Array): Opened {
  return { ...opened, etag: createHash('sha256').update(bytes).digest('base64url') };
}
