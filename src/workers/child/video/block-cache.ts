import { tooLargeMedia } from '../../../formats/byte-reader.ts';
import type { ByteSource } from '../../../formats/video/av-metadata.ts';

/** Same as in the main process: otherwise parts of blocks are fetched twice. */
const BLOCK_BYTES = 64 * 1024;

/** Maximum size of a file that is read at once, which costs less than a second request. */
const MAX_SINGLE_READ_BYTES = 4 * BLOCK_BYTES;

/** Bytes of a file, read in blocks, each once: a demultiplexer makes thousands of reads of a few bytes. */
export class BlockCache implements ByteSource {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  readonly #blocks = new Map<number, Uint8Array>();
  #leftBytes = Number.POSITIVE_INFINITY;
  #leftReads = Number.POSITIVE_INFINITY;

  constructor(source: ByteSource) {
    this.#source = source;
    this.sizeBytes = source.sizeBytes;
  }

  /** Limits later reads of the source; further ones throw `MEDIA_TOO_LARGE`. */
  limit(maxBytes = Number.POSITIVE_INFINITY, maxReads = Number.POSITIVE_INFINITY): void {
    this.#leftBytes = maxBytes;
    this.#leftReads = maxReads;
  }

  peek(start: number, end: number): Uint8Array | undefined {
    const first = Math.floor(start / BLOCK_BYTES);
    const last = Math.floor((end - 1) / BLOCK_BYTES);
    const from = start - first * BLOCK_BYTES;
    if (first >= last) return this.#blocks.get(first)?.subarray(from, from + end - start);
    const blocks: Uint8Array[] = [];
    for (let index = first; index <= last; index += 1) {
      const block = this.#blocks.get(index);
      if (block === undefined) return undefined;
      blocks.push(block);
    }
    return Buffer.concat(blocks).subarray(from, from + end - start);
  }

  /** @throws MediaError `MEDIA_TOO_LARGE` beyond the limit; the error of the source */
  async read(start: number, end: number): Promise<Uint8Array> {
    if (start >= end) return new Uint8Array();
    const isWhole = this.sizeBytes <= MAX_SINGLE_READ_BYTES;
    const stop = isWhole ? this.sizeBytes : end;
    let missing: number | undefined;
    const first = isWhole ? 0 : Math.floor(start / BLOCK_BYTES);
    const last = Math.ceil(stop / BLOCK_BYTES);
    for (let index = first; index <= last; index += 1) {
      const isHere = index === last || this.#blocks.has(index);
      if (isHere && missing !== undefined) await this.#fetch(missing, index);
      missing = isHere ? undefined : (missing ?? index);
    }
    const bytes = this.peek(start, end);
    if (bytes === undefined) throw new Error('Expected the blocks that were just read');
    return bytes;
  }

  async #fetch(first: number, last: number): Promise<void> {
    const start = first * BLOCK_BYTES;
    const end = Math.min(last * BLOCK_BYTES, this.sizeBytes);
    this.#leftBytes -= end - start;
    this.#leftReads -= 1;
    if (this.#leftBytes < 0 || this.#leftReads < 0) throw tooLargeMedia('too many bytes or reads');
    const bytes = await this.#source.read(start, end);
    if (bytes.length !== end - start)
      throw new Error(`Read ${bytes.length} bytes, not ${end - start}`);
    for (let index = first; index < last; index += 1) {
      const at = (index - first) * BLOCK_BYTES;
      this.#blocks.set(index, bytes.subarray(at, at + BLOCK_BYTES));
    }
  }
}
