import { MediaError } from '../../contract/errors.ts';
import { unlessAborted } from '../abort.ts';
import { type ByteRange, type Opened, type RangeReader, ReplacedMeanwhile } from '../ports.ts';
import type { OriginalPlace } from './backend.ts';
import { hashBody } from './digests.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { discard, type HeldBytes, holdBody, isStream, openContent } from './open-body.ts';

/** Unit in which an original is read by ranges, in bytes. */
export const BLOCK_BYTES = 64 * 1024;

/** First block of an original: enough to identify it and to tell what it is. */
export const FIRST_BLOCK = { first: 0, last: BLOCK_BYTES - 1 } as const;

/** Most reads of the source for one original (contract §12). */
const MAX_READS = 64;

/** See `OriginalAccess`. */
interface Access extends OriginalPlace {
  readonly signal: AbortSignal;
  noteError(error: unknown): void;
}

/** One state of an original, and the bounds of reading it. */
interface ReadState {
  readonly etag: string;
  readonly sizeBytes: number;
  readonly maxBytes: number;
  readonly budget: MemoryBudget;
}

/**
 * Reads one state of an original by ranges, and keeps the blocks that were read until it is released. All requests of a
 * flight share the blocks and their bounds.
 */
export class OriginalReader implements RangeReader {
  readonly #access: Access;
  readonly #state: ReadState;
  readonly #blocks = new Map<number, Uint8Array>();
  readonly #held: HeldBytes[] = [];
  #reads = 0;
  #readBytes = 0;
  /** Reads take turns, so that no block is read twice. */
  #turn: Promise<unknown> = Promise.resolve();
  #isReleased = false;

  constructor(access: Access, state: ReadState) {
    this.#access = access;
    this.#state = state;
  }

  get sizeBytes(): number {
    return this.#state.sizeBytes;
  }

  /**
   * Reads the bytes `[start, end)`, cut at the original's end.
   *
   * @throws MediaError `MEDIA_TOO_LARGE` beyond the bounds, `ORIGIN_ERROR` also where the original was replaced,
   *   `ORIGIN_TIMEOUT`, `OVERLOADED`; or `signal.reason`
   */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array> {
    const reading = this.#turn.then(() => this.#read(start, Math.min(end, this.sizeBytes)));
    this.#turn = reading.catch(() => undefined);
    return unlessAborted(reading, signal);
  }

  /** Takes the first block from a body that was opened with `FIRST_BLOCK`. @throws MediaError as `read` does */
  async takeFirst(opened: Opened): Promise<void> {
    const firstBytes = Math.min(BLOCK_BYTES, this.sizeBytes);
    try {
      this.#count(firstBytes);
    } catch (error) {
      discard(this.#access.backend, opened);
      throw error;
    }
    await this.#take(opened, 0, firstBytes);
  }

  /** Reads the whole original, beside the bounds. @throws MediaError as `read` does */
  async readAll(): Promise<Uint8Array> {
    const { bytes } = await this.#hold(await this.#open(undefined, true));
    return bytes;
  }

  /** Computes the SHA-256 of the whole original, hexadecimal, in constant memory and beside the bounds. */
  async hash(): Promise<string> {
    const { backend, signal } = this.#access;
    const opened = await this.#open(undefined, false);
    try {
      return await hashBody(backend, opened);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  release(): void {
    this.#isReleased = true;
    for (const { release } of this.#held.splice(0)) release();
    this.#blocks.clear();
  }

  async #read(start: number, end: number): Promise<Uint8Array> {
    const blocks = Array.from(
      { length: Math.max(0, Math.ceil(end / BLOCK_BYTES) - Math.floor(start / BLOCK_BYTES)) },
      (_, index) => Math.floor(start / BLOCK_BYTES) + index,
    );
    const missing = blocks.filter((block) => !this.#blocks.has(block));
    for (const [index, first] of missing.entries()) {
      if (missing[index - 1] === first - 1) continue;
      let count = 1;
      while (missing[index + count] === first + count) count += 1;
      await this.#fetch(first * BLOCK_BYTES, (first + count) * BLOCK_BYTES);
    }
    const parts = blocks.map((block) => {
      const bytes = this.#blocks.get(block);
      if (bytes === undefined) throw new Error('The original is not read any more.');
      const at = block * BLOCK_BYTES;
      return bytes.subarray(Math.max(0, start - at), end - at);
    });
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
  }

  async #fetch(start: number, blocksEnd: number): Promise<void> {
    const end = Math.min(blocksEnd, this.sizeBytes);
    this.#count(end - start);
    await this.#take(await this.#open({ first: start, last: end - 1 }, true), start, end);
  }

  /** Opens the original or a part of it, if it still is in the state that is read. */
  async #open(range: ByteRange | undefined, isHeld: boolean): Promise<Opened> {
    const { backend, sourceKey, signal } = this.#access;
    const { etag, sizeBytes } = this.#state;
    signal.throwIfAborted();
    try {
      const options = { signal, range, isHeld, ifMatch: etag };
      const opened = await openContent(backend, sourceKey, options);
      if (opened.etag === etag && opened.sizeBytes === sizeBytes) return opened;
      if (isStream(opened.body)) opened.body.destroy();
      throw replaced();
    } catch (error) {
      const failure = isGone(error) ? replaced(error) : error;
      this.#access.noteError(failure);
      throw failure;
    }
  }

  /** @throws MediaError `MEDIA_TOO_LARGE` for a read beyond the bounds */
  #count(bytes: number): void {
    this.#reads += 1;
    this.#readBytes += bytes;
    if (this.#reads <= MAX_READS && this.#readBytes <= this.#state.maxBytes) return;
    const cause = new Error(`${this.#reads} reads of ${this.#readBytes} bytes`);
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }

  /** Takes the blocks of a part that was opened; memory is accounted for before it comes. */
  async #take(opened: Opened, start: number, end: number): Promise<void> {
    const held = await this.#hold({ ...opened, sizeBytes: end - start, part: undefined });
    if (this.#isReleased) return;
    for (let at = start; at < end; at += BLOCK_BYTES) {
      const bytes = held.bytes.subarray(at - start, at - start + BLOCK_BYTES);
      this.#blocks.set(at / BLOCK_BYTES, bytes);
    }
  }

  /** Holds a body until this reader is released. */
  async #hold(opened: Opened): Promise<HeldBytes> {
    const { backend, signal } = this.#access;
    const unbounded = { ...backend, maxOriginalBytes: Number.POSITIVE_INFINITY };
    const held = await holdBody(unbounded, opened, this.#state.budget, signal);
    if (this.#isReleased) held.release();
    else this.#held.push(held);
    return held;
  }
}

export function replaced(cause?: unknown): MediaError {
  const message = 'The original was replaced while it was read.';
  return new MediaError('ORIGIN_ERROR', { cause: new ReplacedMeanwhile(message, { cause }) });
}

function isGone(error: unknown): boolean {
  const code = error instanceof MediaError ? error.code : undefined;
  return code === 'UNKNOWN_MEDIA' || code === 'RANGE_NOT_SATISFIABLE';
}
