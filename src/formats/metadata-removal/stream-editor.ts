/** A computation that yields when it needs more input. */
export type Steps<T = void> = Generator<void, T, void>;

/** A file cannot be cleaned while it streams; the message is a short sentence for clients. */
export class MetadataRemovalError extends Error {
  override readonly name = 'MetadataRemovalError';
}

/** Maximum bytes that a cleaner buffers, except for the index of a HEIC. */
export const MAX_BUFFERED_BYTES = 64 * 1024;

/** Maximum segments, chunks, blocks or boxes: eleven hours of video in fragments of two seconds. */
const MAX_PARTS = 250_000;

/** Maximum zeros that are written at once, in bytes. */
const MAX_ZERO_BYTES = 64 * 1024;
const MIN_CAPACITY = 256;

/**
 * Overwrites parts of a file while it streams. The cleaner resumes its generators with the next chunk. Copies each byte
 * a constant number of times, regardless of the chunks' sizes.
 */
export class StreamEditor {
  /** Whether any output byte differs from the input. */
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

  constructor(format: string) {
    this.#format = format;
  }

  /** File offset of the next byte to keep or overwrite. */
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

  finish(): void {
    this.#isEnded = true;
  }

  /** Returns the finished bytes in one piece. Copies buffered bytes, since the caller may reuse its chunk. */
  takeOutput(): readonly Uint8Array[] {
    if (!this.#isOwned && this.#end > this.#start) this.#reserve(0);
    const output = this.#output;
    this.#output = [];
    // Joined, because a storage writes each piece separately: 64 KiB may be 40,000 small segments.
    return output.length > 1 ? [Buffer.concat(output)] : output;
  }

  countPart(): void {
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) throw this.damaged('it has too many parts');
  }

  *isAtEnd(): Steps<boolean> {
    return (yield* this.peek(1)).length === 0;
  }

  /** Returns the next `count` bytes without consuming them; fewer at the end of the input. */
  *peek(count: number): Steps<Uint8Array> {
    while (this.#end - this.#start < count && !this.#isEnded) yield;
    return this.#bytes.subarray(this.#start, Math.min(this.#start + count, this.#end));
  }

  /** Like `peek`, with exactly `count` bytes. @throws MetadataRemovalError if the input is shorter */
  *require(count: number): Steps<Uint8Array> {
    const bytes = yield* this.peek(count);
    if (bytes.length < count) throw this.truncated();
    return bytes;
  }

  /** Returns all buffered bytes without consuming them: at least one, except at the end of the input. */
  *peekChunk(): Steps<Uint8Array> {
    yield* this.peek(1);
    return this.#bytes.subarray(this.#start, this.#end);
  }

  /** Keeps the next `count` bytes. @throws MetadataRemovalError if the input is shorter */
  *keep(count: number): Steps {
    for (let left = count; left > 0; ) {
      const chunk = yield* this.#requireChunk(left);
      this.#emit(chunk);
      left -= chunk.length;
    }
  }

  /** Zeros the next `count` bytes. @throws MetadataRemovalError if the input is shorter */
  *zero(count: number): Steps {
    for (let left = count; left > 0; ) {
      const chunk = yield* this.#requireChunk(Math.min(left, MAX_ZERO_BYTES));
      this.#emit(new Uint8Array(chunk.length));
      left -= chunk.length;
    }
  }

  *zeroRest(): Steps {
    while (!(yield* this.isAtEnd())) yield* this.zero((yield* this.peekChunk()).length);
  }

  /** Overwrites the next bytes. @throws MetadataRemovalError if the input is shorter */
  *overwrite(bytes: Uint8Array): Steps {
    yield* this.require(bytes.length);
    this.#emit(bytes);
  }

  truncated(): MetadataRemovalError {
    return new MetadataRemovalError(`The ${this.#format} is truncated.`);
  }

  damaged(reason: string): MetadataRemovalError {
    return new MetadataRemovalError(`The ${this.#format} is damaged: ${reason}.`);
  }

  *#requireChunk(maxBytes: number): Steps<Uint8Array> {
    const chunk = yield* this.peekChunk();
    if (chunk.length === 0) throw this.truncated();
    return chunk.subarray(0, maxBytes);
  }

  /** Outputs bytes instead of as many input bytes. */
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

  /** Copies the buffered bytes to new memory with room for `count` more; the caller may still use the old memory. */
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
