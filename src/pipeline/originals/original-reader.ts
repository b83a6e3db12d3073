import { createHash } from 'node:crypto';
import { MediaError } from '../../contract/errors.ts';
import { unlessAborted } from '../abort.ts';
import type { ByteRange, Opened, RangeReader } from '../ports.ts';
import { hashBody } from './digests.ts';
import type { MemoryBudget } from './memory-budget.ts';
import {
  type BufferedBytes,
  bufferBody,
  discard,
  isStream,
  openContent,
  withBodyDeadline,
} from './open-body.ts';
import { replaced } from './replaced.ts';
import { BLOCK_BYTES, type ReadingFlight, SequentialBody } from './sequential-body.ts';

/** Maximum number of reads of one original (contract §12). */
const MAX_READS = 64;

/** One state of an original, and the limit of reads. */
interface ReadState {
  readonly etag: string;
  /** Validator of another site's ranges, instead of `etag`. */
  readonly rangeValidator?: string | undefined;
  readonly sizeBytes: number;
  readonly maxBytes: number;
  readonly budget: MemoryBudget;
}

/**
 * Reads one state of an original by ranges, and keeps the blocks until `free`. Requests of a flight share the blocks
 * and their limits.
 */
export class OriginalReader implements RangeReader {
  readonly #flight: ReadingFlight;
  readonly #state: ReadState;
  readonly #blocks = new Map<number, Uint8Array>();
  readonly #buffered: BufferedBytes[] = [];
  #sizeBytes: number;
  /** Body of another site that is read from its start, if ranges cannot be used. */
  #body: SequentialBody | undefined;
  /** Whether the original may be longer than `sizeBytes`, since its site declares no length. */
  isTruncated = false;
  #reads = 0;
  #readBytes = 0;
  #lastRead: Promise<unknown> = Promise.resolve();
  #isFreed = false;

  constructor(flight: ReadingFlight, state: ReadState) {
    this.#flight = flight;
    this.#state = state;
    this.#sizeBytes = state.sizeBytes;
  }

  get etag(): string {
    return this.#state.etag;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Reads the bytes `[start, end)`, cut at the end of the original.
   *
   * @throws MediaError `MEDIA_TOO_LARGE` above the limits, `ORIGIN_ERROR` also if the original was replaced,
   *   `ORIGIN_TIMEOUT`, `OVERLOADED`; or `signal.reason`
   */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array> {
    const reading = this.#inSequence(() => this.#read(start, Math.min(end, this.sizeBytes)));
    return unlessAborted(reading, signal);
  }

  /** Stores the first block of a body that was opened with `FIRST_BLOCK`; `prefix` was read before. @throws as `read` */
  async storeFirstBlock(opened: Opened, prefix?: Uint8Array): Promise<void> {
    const firstBytes = Math.min(BLOCK_BYTES, this.sizeBytes);
    try {
      this.#count(firstBytes);
    } catch (error) {
      discard(this.#flight.backend, opened);
      throw error;
    }
    await this.#storeAll(opened, 0, firstBytes, prefix);
  }

  /**
   * Uses a complete body for all reads. A body of unknown length is read immediately, to its end or to the limit, which
   * then counts as its end.
   *
   * @throws MediaError as `read`
   */
  async attachBody(opened: Opened, prefix: Uint8Array = new Uint8Array()): Promise<void> {
    const { budget, maxBytes } = this.#state;
    const body = new SequentialBody(this.#flight, opened, budget.reserve(0), this.#blocks, prefix);
    this.#body = body;
    if (opened.sizeBytes !== undefined) return;
    this.#sizeBytes = await body.readWithoutLength(maxBytes);
    this.isTruncated = this.#sizeBytes === maxBytes;
  }

  /** Reads the complete original, regardless of the limits. @throws MediaError as `read` */
  async readAll(): Promise<Uint8Array> {
    if (this.#body !== undefined) return Buffer.concat(await this.#readBody(this.#body));
    const { bytes } = await this.#buffer(await this.#open(undefined, true));
    return bytes;
  }

  /** Computes the SHA-256 (hexadecimal) in constant memory, regardless of the limits. */
  async hash(): Promise<string> {
    const { backend, signal } = this.#flight;
    if (this.#body !== undefined) {
      const hash = createHash('sha256');
      for (const block of await this.#readBody(this.#body)) hash.update(block);
      return hash.digest('hex');
    }
    const opened = await this.#open(undefined, false);
    try {
      return await hashBody(backend, opened);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  free(): void {
    this.#isFreed = true;
    this.#body?.free();
    for (const { free } of this.#buffered.splice(0)) free();
    this.#blocks.clear();
  }

  /** Runs reads sequentially, so that no block is read twice. */
  #inSequence<Result>(read: () => Promise<Result>): Promise<Result> {
    const reading = this.#lastRead.then(read);
    this.#lastRead = reading.catch(() => undefined);
    return reading;
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
      if (bytes === undefined) throw new Error('The reader of the original was freed.');
      const at = block * BLOCK_BYTES;
      return bytes.subarray(Math.max(0, start - at), end - at);
    });
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
  }

  async #fetch(start: number, blocksEnd: number): Promise<void> {
    const end = Math.min(blocksEnd, this.sizeBytes);
    if (this.#body !== undefined) {
      this.#count(end - this.#body.storedBytes, 0);
      await this.#body.readUpTo(end);
      return;
    }
    this.#count(end - start);
    await this.#storeAll(await this.#open({ first: start, last: end - 1 }, true), start, end);
  }

  /** Opens the original, or a range of it, in the same state. */
  async #open(range: ByteRange | undefined, isBuffered: boolean): Promise<Opened> {
    const { backend, sourceKey, signal } = this.#flight;
    const { etag, rangeValidator, sizeBytes } = this.#state;
    signal.throwIfAborted();
    try {
      const condition = backend.isExternal ? { ifRange: rangeValidator } : { ifMatch: etag };
      const opened = await openContent(backend, sourceKey, {
        signal,
        range,
        isBuffered,
        ...condition,
      });
      const isSame = backend.isExternal
        ? opened.rangeValidator === rangeValidator &&
          (opened.part === undefined) === (range === undefined)
        : opened.etag === etag;
      if (isSame && opened.sizeBytes === sizeBytes) return opened;
      if (isStream(opened.body)) opened.body.destroy();
      throw replaced();
    } catch (error) {
      const failure = isGone(error) ? replaced(error) : error;
      this.#flight.noteError(failure);
      throw failure;
    }
  }

  /** @throws MediaError `MEDIA_TOO_LARGE` */
  #count(bytes: number, reads = 1): void {
    this.#reads += reads;
    this.#readBytes += bytes;
    if (this.#reads <= MAX_READS && this.#readBytes <= this.#state.maxBytes) return;
    const cause = new Error(`${this.#reads} reads of ${this.#readBytes} bytes`);
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }

  /** Reads a body to its end regardless of the limits, and returns all blocks. */
  async #readBody(body: SequentialBody): Promise<readonly Uint8Array[]> {
    await this.#inSequence(() => body.readUpTo(this.sizeBytes));
    return Array.from(
      { length: Math.ceil(this.sizeBytes / BLOCK_BYTES) },
      (_, index) => this.#blocks.get(index) ?? new Uint8Array(),
    );
  }

  /** Stores the blocks of an opened range in accounted memory. */
  async #storeAll(opened: Opened, start: number, end: number, prefix?: Uint8Array): Promise<void> {
    const part = { ...opened, sizeBytes: end - start, part: undefined };
    const buffered = await this.#buffer(part, prefix);
    if (this.#isFreed) return;
    for (let at = start; at < end; at += BLOCK_BYTES) {
      const bytes = buffered.bytes.subarray(at - start, at - start + BLOCK_BYTES);
      this.#blocks.set(at / BLOCK_BYTES, bytes);
    }
  }

  /** Buffers a body until this reader is freed. */
  async #buffer(opened: Opened, prefix?: Uint8Array): Promise<BufferedBytes> {
    const { backend, signal } = this.#flight;
    const unbounded = { ...backend, maxOriginalBytes: Number.POSITIVE_INFINITY };
    const buffering = withBodyDeadline(
      backend,
      signal,
      (within) => bufferBody(unbounded, opened, this.#state.budget, within, prefix),
      (late) => late.free(),
    );
    const buffered = await buffering.catch((error: unknown) => {
      this.#flight.noteError(error);
      throw error;
    });
    if (this.#isFreed) buffered.free();
    else this.#buffered.push(buffered);
    return buffered;
  }
}

function isGone(error: unknown): boolean {
  const code = error instanceof MediaError ? error.code : undefined;
  return code === 'UNKNOWN_MEDIA' || code === 'RANGE_NOT_SATISFIABLE';
}
