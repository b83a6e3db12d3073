import { MediaError } from '../../contract/errors.ts';
import { sniffMoving } from '../../formats/video/sniff-moving.ts';
import {
  type Opened,
  type OpenOptions,
  type OriginalIdentity,
  ReplacedMeanwhile,
  type Unchanged,
} from '../ports.ts';
import type { Backend, OriginalPlace } from './backend.ts';
import { sha256Of, stateOf } from './digests.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { contentOf, discard, openBody } from './open-body.ts';
import { BLOCK_BYTES, FIRST_BLOCK, OriginalReader } from './original-reader.ts';
import type { OriginalDetails, OriginalRecords } from './records.ts';

/** A video, of which ranges are read until its last user has left; the reader accounts for its memory. */
export interface HeldVideo extends OriginalIdentity {
  readonly reader: OriginalReader;
  readonly release: () => void;
}

export interface AccessParts {
  readonly records: OriginalRecords;
  readonly budget: MemoryBudget;
  /** Most bytes that are read of one original by ranges. */
  readonly maxRangeBytes: number;
}

/** Containers of videos that have posters (contract §12). */
const VIDEOS: ReadonlySet<string | undefined> = new Set(['mp4', 'mov', 'webm', 'matroska']);

/** Whether an original was replaced while it was read. */
export function isReplaced(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof ReplacedMeanwhile;
}

/** Whether an original that begins with these bytes is a video. */
export function isVideo(beginning: Uint8Array): boolean {
  return VIDEOS.has(sniffMoving(beginning));
}

/**
 * Access to one original at its source; the records learn what the source tells, and how it fails. By ranges, in which
 * videos are read, all requests share one reader of its state.
 */
export class OriginalAccess implements OriginalPlace {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
  /** Aborts when no request needs the original any more. */
  readonly signal: AbortSignal;
  readonly records: OriginalRecords;
  isOutdated = false;
  readonly #parts: AccessParts;
  #reader: OriginalReader | undefined;

  constructor(
    { backend, originKey, sourceKey }: OriginalPlace,
    parts: AccessParts,
    signal: AbortSignal,
  ) {
    this.backend = backend;
    this.originKey = originKey;
    this.sourceKey = sourceKey;
    this.signal = signal;
    this.records = parts.records;
    this.#parts = parts;
  }

  /** @throws MediaError of the source */
  async ask(options: Pick<OpenOptions, 'known' | 'range'>): Promise<Opened | Unchanged> {
    const { backend, sourceKey, signal } = this;
    try {
      return await openBody(backend, sourceKey, { ...options, signal, isHeld: true });
    } catch (error) {
      this.noteError(error);
      throw error;
    }
  }

  /** @throws MediaError of the source */
  async open(range?: OpenOptions['range']): Promise<Opened> {
    return contentOf(this.backend, await this.ask({ range }));
  }

  findFailure(periodMs: number): MediaError | undefined {
    return this.records.findFailure(this.originKey, periodMs, this.backend);
  }

  noteFound(opened: Opened): OriginalIdentity {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source has not told the tag of the original.');
    const identity = { etag, lastModified };
    if (!this.isOutdated) this.records.noteFound(this.originKey, identity, opened);
    return identity;
  }

  noteError(error: unknown): void {
    if (this.isOutdated) return;
    if (isReplaced(error)) {
      this.records.forget(this.originKey);
      this.isOutdated = true;
    } else this.records.noteError(this.originKey, error);
  }

  noteDetails(etag: string, details: Partial<OriginalDetails>): void {
    if (!this.isOutdated) this.records.noteDetails(this.originKey, etag, details);
  }

  /**
   * Opens the current state; its first block identifies it.
   *
   * @param leastBytes may be read whatever the bound of videos is
   * @throws MediaError of the source, `MEDIA_TOO_LARGE`
   */
  async openByRanges(
    leastBytes = 0,
  ): Promise<{ readonly identity: OriginalIdentity; readonly reader: OriginalReader }> {
    const opened = await this.open(FIRST_BLOCK);
    const identity = this.noteFound(opened);
    const reader = this.#createReader(identity, opened.sizeBytes, leastBytes);
    await reader.takeFirst(opened);
    return { identity, reader };
  }

  /**
   * Opens a state that may be a video; returns `undefined` if the state is not.
   *
   * @param videoBytes size of a state that is known to be a video
   */
  async openVideo(
    identity: OriginalIdentity,
    videoBytes: number | undefined,
  ): Promise<HeldVideo | undefined> {
    if (videoBytes !== undefined) {
      return this.#hold(identity, this.#reader ?? this.#createReader(identity, videoBytes));
    }
    if (this.#reader !== undefined) return this.#tryVideo(identity, this.#reader);
    const opened = await this.openByRanges();
    return this.#tryVideo(opened.identity, opened.reader);
  }

  /** Opens a state whose read as a whole has ended; returns `undefined` if the state is not a video. */
  reopen(identity: OriginalIdentity, sizeBytes: number | undefined) {
    return this.#tryVideo(identity, this.#createReader(identity, sizeBytes));
  }

  /**
   * Takes another site's video, by ranges if a validator ties them to one version, else from its start; returns
   * `undefined` if the original is not a video.
   *
   * @param opened the first block, or the whole from a site that sends no ranges
   * @param heldBytes size up to which the whole is read before a poster is made, to check its digest
   */
  async takeSiteVideo(opened: Opened, heldBytes: number): Promise<HeldVideo | undefined> {
    const { backend, originKey, records, signal } = this;
    const { part, rangeValidator, sizeBytes = 0, lastModified, validators } = opened;
    const isByRanges = rangeValidator !== undefined && sizeBytes > heldBytes;
    if (part !== undefined && !isByRanges) {
      discard(backend, opened);
      return this.takeSiteVideo(await this.open(), heldBytes);
    }
    const state = stateOf(backend, opened);
    const reader = this.#createReader(
      { etag: state, lastModified },
      sizeBytes,
      heldBytes,
      rangeValidator,
    );
    await (part === undefined ? reader.takeWhole(opened) : reader.takeFirst(opened));
    const beginning = await reader.read(0, BLOCK_BYTES, signal);
    if (!isVideo(beginning)) {
      reader.release();
      this.#reader = undefined;
      return undefined;
    }
    const isTold = (validators?.etag ?? validators?.lastModified) !== undefined;
    // A length alone would tell two versions apart too rarely.
    const etag = isTold ? state : `${state} ${sha256Of(beginning)}`;
    // The background hashes the state that the site declares.
    const sha256 = records.findSha256(originKey, etag) ?? records.findSha256(originKey, state);
    const held = this.#hold(this.noteFound({ ...opened, etag }), reader);
    if (sha256 !== undefined) this.noteDetails(etag, { sha256 });
    return held;
  }

  releaseReader(): void {
    this.#reader?.release();
  }

  async #tryVideo(
    identity: OriginalIdentity,
    reader: OriginalReader,
  ): Promise<HeldVideo | undefined> {
    const beginning = await reader.read(0, BLOCK_BYTES, this.signal);
    if (isVideo(beginning)) return this.#hold(identity, reader);
    reader.release();
    this.#reader = undefined;
    return undefined;
  }

  #hold(identity: OriginalIdentity, reader: OriginalReader): HeldVideo {
    this.noteDetails(identity.etag, { videoBytes: reader.sizeBytes });
    return { ...identity, reader, release: () => reader.release() };
  }

  #createReader(
    { etag }: OriginalIdentity,
    sizeBytes = 0,
    leastBytes = 0,
    rangeValidator?: string,
  ): OriginalReader {
    const { budget, maxRangeBytes } = this.#parts;
    const maxBytes = Math.max(maxRangeBytes, leastBytes);
    this.#reader?.release();
    const state = { etag, rangeValidator, sizeBytes, maxBytes, budget };
    this.#reader = new OriginalReader(this, state);
    return this.#reader;
  }
}
