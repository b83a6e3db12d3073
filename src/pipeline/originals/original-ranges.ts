import { sniffMoving } from '../../formats/video/sniff-moving.ts';
import type { OriginalIdentity } from '../ports.ts';
import type { MemoryBudget } from './memory-budget.ts';
import type { OriginalAccess } from './original-access.ts';
import { BLOCK_BYTES, FIRST_BLOCK, OriginalReader } from './original-reader.ts';

/** A video, of which ranges are read until its last user has left; the reader accounts for its memory. */
export interface HeldVideo extends OriginalIdentity {
  readonly reader: OriginalReader;
  readonly release: () => void;
}

export interface RangeBounds {
  readonly budget: MemoryBudget;
  /** Most bytes that are read of one original by ranges. */
  readonly maxRangeBytes: number;
}

/** Containers of videos that have posters (contract §12). */
const VIDEOS: ReadonlySet<string | undefined> = new Set(['mp4', 'mov', 'webm', 'matroska']);

/** Whether an original that begins with these bytes is a video. */
export function isVideo(beginning: Uint8Array): boolean {
  return VIDEOS.has(sniffMoving(beginning));
}

/** Ranges of one original: the way in which videos are read. All requests share one reader of its state. */
export class OriginalRanges {
  readonly #access: OriginalAccess;
  readonly #bounds: RangeBounds;
  #reader: OriginalReader | undefined;

  constructor(access: OriginalAccess, bounds: RangeBounds) {
    this.#access = access;
    this.#bounds = bounds;
  }

  /**
   * Opens the current state; its first block identifies it.
   *
   * @param leastBytes may be read whatever the bound of videos is
   * @throws MediaError of the source, `MEDIA_TOO_LARGE`
   */
  async open(
    leastBytes = 0,
  ): Promise<{ readonly identity: OriginalIdentity; readonly reader: OriginalReader }> {
    const opened = await this.#access.open(FIRST_BLOCK);
    const identity = this.#access.noteFound(opened);
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
    const opened = await this.open();
    return this.#tryVideo(opened.identity, opened.reader);
  }

  /** Opens a state whose read as a whole has ended; returns `undefined` if the state is not a video. */
  reopen(identity: OriginalIdentity, sizeBytes: number | undefined) {
    return this.#tryVideo(identity, this.#createReader(identity, sizeBytes));
  }

  release(): void {
    this.#reader?.release();
  }

  async #tryVideo(
    identity: OriginalIdentity,
    reader: OriginalReader,
  ): Promise<HeldVideo | undefined> {
    const beginning = await reader.read(0, BLOCK_BYTES, this.#access.signal);
    if (isVideo(beginning)) return this.#hold(identity, reader);
    reader.release();
    this.#reader = undefined;
    return undefined;
  }

  #hold(identity: OriginalIdentity, reader: OriginalReader): HeldVideo {
    this.#access.noteDetails(identity.etag, { videoBytes: reader.sizeBytes });
    return { ...identity, reader, release: () => reader.release() };
  }

  #createReader({ etag }: OriginalIdentity, sizeBytes = 0, leastBytes = 0): OriginalReader {
    const { backend, sourceKey, signal } = this.#access;
    const { budget, maxRangeBytes } = this.#bounds;
    const maxBytes = Math.max(maxRangeBytes, leastBytes);
    const onFailure = (error: unknown): void => this.#access.noteError(error);
    this.#reader?.release();
    this.#reader = new OriginalReader(
      { backend, sourceKey, etag, sizeBytes, signal, onFailure },
      { budget, maxBytes },
    );
    return this.#reader;
  }
}
