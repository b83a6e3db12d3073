import type { Opened } from '../ports.ts';
import { brokenError, type OriginalLocation } from './backend.ts';
import { readAtLeast } from './forward-body.ts';
import type { Reservation } from './memory-budget.ts';
import { isStream, withBodyDeadline } from './open-body.ts';

/** Unit of reads by ranges, in bytes. */
export const BLOCK_BYTES = 64 * 1024;

/** First block, which identifies an original and its format. */
export const FIRST_BLOCK = { first: 0, last: BLOCK_BYTES - 1 } as const;

/** Step of reading a body of unknown length, in bytes: a multiple of a block. */
const STEP_BYTES = 16 * BLOCK_BYTES;

/** Members of `OriginalFlight` that reading needs; the class itself imports this file. */
export interface ReadingFlight extends OriginalLocation {
  readonly signal: AbortSignal;
  readonly noteError: (error: unknown) => void;
}

/** A complete body that is read from its start, only as far as needed, and stored in blocks. */
export class SequentialBody {
  readonly #flight: ReadingFlight;
  readonly #opened: Opened;
  readonly #memory: Reservation;
  readonly #blocks: Map<number, Uint8Array>;
  #storedBytes = 0;
  /** Bytes that were read, but not stored in a block yet. */
  #rest: Uint8Array;
  #isFreed = false;

  /**
   * @param memory grows with the stored bytes
   * @param blocks receives the blocks by their index
   * @param prefix bytes already read from the body
   */
  constructor(
    flight: ReadingFlight,
    opened: Opened,
    memory: Reservation,
    blocks: Map<number, Uint8Array>,
    prefix: Uint8Array,
  ) {
    this.#flight = flight;
    this.#opened = opened;
    this.#memory = memory;
    this.#blocks = blocks;
    this.#rest = prefix;
  }

  get storedBytes(): number {
    return this.#storedBytes;
  }

  /** Reads a body of unknown length to its end or to a maximum; returns the reached position. */
  async readWithoutLength(maxBytes: number): Promise<number> {
    let reached = 0;
    await this.#withinDeadline(async () => {
      for (let hasMore = true; hasMore && this.#storedBytes < maxBytes; ) {
        const end = Math.min(this.#storedBytes + STEP_BYTES, maxBytes);
        reached = await this.#storeUpTo(end);
        hasMore = reached === end;
      }
    });
    return reached;
  }

  /** Reads up to a position. @throws MediaError `ORIGIN_ERROR` if the body is shorter; and as `OriginalReader.read` */
  async readUpTo(end: number): Promise<void> {
    if (end <= this.#storedBytes) return;
    await this.#withinDeadline(async () => {
      const found = await this.#storeUpTo(end);
      if (found === end) return;
      const cause = new Error(`The body ended after ${found} bytes.`);
      throw brokenError(this.#flight.backend, cause);
    });
  }

  free(): void {
    this.#isFreed = true;
    if (isStream(this.#opened.body)) this.#opened.body.destroy();
    this.#memory.free();
  }

  /** Runs reads within the deadline of a body, and remembers failures. */
  async #withinDeadline(work: () => Promise<void>): Promise<void> {
    const { backend, signal } = this.#flight;
    try {
      await withBodyDeadline(backend, signal, work);
    } catch (error) {
      if (isStream(this.#opened.body)) this.#opened.body.destroy();
      signal.throwIfAborted();
      this.#flight.noteError(error);
      throw error;
    }
  }

  /** Reads blocks up to a position or the end; returns the reached position. */
  async #storeUpTo(wantedEnd: number): Promise<number> {
    const { backend, signal } = this.#flight;
    const storedBytes = this.#storedBytes;
    const rest = this.#rest;
    if (this.#isFreed) throw new Error('The reader of the original was freed.');
    this.#memory.grow(wantedEnd);
    const missingBytes = wantedEnd - storedBytes - rest.length;
    const unbounded = { ...this.#opened, sizeBytes: undefined };
    const bytes =
      missingBytes > 0
        ? Buffer.concat([rest, await readAtLeast(backend, unbounded, missingBytes, signal)])
        : rest;
    const end = Math.min(wantedEnd, storedBytes + bytes.length);
    if (this.#isFreed) return end;
    for (let at = storedBytes; at < end; at += BLOCK_BYTES) {
      const blockEnd = Math.min(at + BLOCK_BYTES, end);
      this.#blocks.set(at / BLOCK_BYTES, bytes.subarray(at - storedBytes, blockEnd - storedBytes));
    }
    this.#rest = Uint8Array.from(bytes.subarray(end - storedBytes));
    this.#storedBytes = end;
    return end;
  }
}
