/** A computation that yields whenever it needs more input. */
export type Steps<T = void> = Generator<void, T, void>;

/** Why a file cannot be cleaned while it streams; a short English sentence for clients. */
export class MetadataRemovalError extends Error {
  override readonly name = 'MetadataRemovalError';
}

/** Maximum number of bytes that a cleaner buffers; the index of a HEIC may be longer. */
export const MAX_BUFFERED_BYTES = 64 * 1024;

/**
 * Maximum number of segments, chunks, blocks or boxes: eleven hours of video in fragments of two seconds, and less than a
 * second of CPU time if all are empty.
 */
const MAX_PARTS = 250_000;

/** Bytes of zeros that are written at once. */
const MAX_ZERO_BYTES = 64 * 1024;
const MIN_CAPACITY = 256;

/**
 * Overwrites parts of a file of unknown length while it streams. Each method that may need more input is a generator; the
 * cleaner resumes it with the next chunk. Every byte is copied a constant number of times, whatever the chunks' sizes.
 */
export class StreamEditor {
  /** Whether a byte of the output differs from its input. */
  hasChanged = false;
  readonly #format: string;
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  #end = 0;
  #isOwned = true;
  #isEnded = false;
  #position = 0;
  #parts = 0;
  #output: Uint8Array[] = [];

  /** @param format in error messages */
  constructor(format: string) {
    this.#format = format;
  }

  /** Offset in the file of the next byte to keep or to overwrite. */
  get position(): number {
    return this.#position;
  }

  append(chunk: Uint8Array): void {
    const buffered = this.#end - this.#start;
    if (buffered === 0) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#end = chunk.length;
      this.#isOwned = false;
      return;
    }
    this.#reserve(chunk.length);
    this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** Marks the end of the input. */
  finish(): void {
    this.#isEnded = true;
  }

  /** Returns the bytes that are final, in one piece. Copies buffered bytes: the caller may reuse its chunk. */
  takeOutput(): readonly Uint8Array[] {
    if (!this.#isOwned && this.#end > this.#start) this.#reserve(0);
    const output = this.#output;
    this.#output = [];
    // A storage writes each piece separately, and 64 KiB of small segments are 40,000 of them.
    return output.length > 1 ? [Buffer.concat(output)] : output;
  }

  /** Counts a part of the file. @throws MetadataRemovalError beyond the maximum */
  countPart(): void {
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) throw this.damaged('it has too many parts');
  }

  *isAtEnd(): Steps<boolean> {
    return (yield* this.peek(1)).length === 0;
  }

  /** Returns the next `count` bytes without consuming them; fewer where the input ends. */
  *peek(count: number): Steps<Uint8Array> {
    while (this.#end - this.#start < count && !this.#isEnded) yield;
    return this.#bytes.subarray(this.#start, Math.min(this.#start + count, this.#end));
  }

  /** Returns the next `count` bytes without consuming them. @throws MetadataRemovalError where the input ends */
  *require(count: number): Steps<Uint8Array> {
    const bytes = yield* this.peek(count);
    if (bytes.length < count) throw this.truncated();
    return bytes;
  }

  /** Returns all buffered bytes, at least one, without consuming them; none where the input ends. */
  *peekChunk(): Steps<Uint8Array> {
    yield* this.peek(1);
    return this.#bytes.subarray(this.#start, this.#end);
  }

  /** Keeps the next `count` bytes. @throws MetadataRemovalError where the input ends */
  *keep(count: number): Steps {
    for (let left = count; left > 0; ) {
      const chunk = yield* this.#requireChunk(left);
      this.#emit(chunk);
      left -= chunk.length;
    }
  }

  /** Overwrites the next `count` bytes with zeros. @throws MetadataRemovalError where the input ends */
  *zero(count: number): Steps {
    for (let left = count; left > 0; ) {
      const chunk = yield* this.#requireChunk(Math.min(left, MAX_ZERO_BYTES));
      this.#emit(new Uint8Array(chunk.length));
      left -= chunk.length;
    }
  }

  /** Overwrites all bytes up to the end of the input with zeros. */
  *zeroRest(): Steps {
    while (!(yield* this.isAtEnd())) yield* this.zero((yield* this.peekChunk()).length);
  }

  /** Overwrites the next bytes with as many others. @throws MetadataRemovalError where the input ends */
  *overwrite(bytes: Uint8Array): Steps {
    yield* this.require(bytes.length);
    this.#emit(bytes);
  }

  /** Returns the error for a file that ends too early. */
  truncated(): MetadataRemovalError {
    return new MetadataRemovalError(`The ${this.#format} is truncated.`);
  }

  /** Returns the error for a file that breaks the rules of its format. */
  damaged(reason: string): MetadataRemovalError {
    return new MetadataRemovalError(`The ${this.#format} is damaged: ${reason}.`);
  }

  *#requireChunk(maxBytes: number): Steps<Uint8Array> {
    const chunk = yield* this.peekChunk();
    if (chunk.length === 0) throw this.truncated();
    return chunk.subarray(0, maxBytes);
  }

  /** Replaces the next input bytes with as many bytes of output. */
  #emit(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const from = this.#bytes.subarray(this.#start, this.#start + bytes.length);
    this.hasChanged ||= Buffer.compare(from, bytes) !== 0;
    this.#start += bytes.length;
    this.#position += bytes.length;
    const last = this.#output.at(-1);
    if (last?.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset) {
      const joined = new Uint8Array(last.buffer, last.byteOffset, last.length + bytes.length);
      this.#output[this.#output.length - 1] = joined;
    } else this.#output.push(bytes);
  }

  /** Moves the buffered bytes to own memory with room for `count` more; the caller may still use the old memory. */
  #reserve(count: number): void {
    if (this.#isOwned && this.#end + count <= this.#bytes.length) return;
    const buffered = this.#bytes.subarray(this.#start, this.#end);
    const capacity = Math.max(MIN_CAPACITY, 2 * (buffered.length + count));
    this.#bytes = new Uint8Array(capacity);
    this.#bytes.set(buffered);
    this.#start = 0;
    this.#end = buffered.length;
    this.#isOwned = true;
  }
}
