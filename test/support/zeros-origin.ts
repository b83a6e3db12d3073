import { Readable } from 'node:stream';
import type { Opened, OpenOptions, Source } from '../../src/pipeline/ports.ts';
import { clampRange } from '../../src/storage/origin-object.ts';

const CHUNK = Buffer.alloc(65_536);

/** An origin that has every object: zeros, made only as they are read. */
export class ZerosOrigin implements Source {
  readonly identity = 'tag';
  readonly #sizeBytes: number;
  /** How many objects were opened. */
  reads = 0;
  /** Bodies that were handed out and are neither read to their end nor let go. */
  openBodies = 0;

  /** @param sizeBytes of each object */
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
  }

  async open(_key: string, { signal, range }: OpenOptions): Promise<Opened> {
    signal.throwIfAborted();
    const { first, last } = clampRange(range, this.#sizeBytes);
    let left = last - first + 1;
    this.reads += 1;
    this.openBodies += 1;
    const body = new Readable({
      highWaterMark: CHUNK.length,
      read() {
        const chunk = CHUNK.subarray(0, left);
        left -= chunk.length;
        this.push(chunk.length === 0 ? null : chunk);
      },
    });
    body.once('close', () => {
      this.openBodies -= 1;
    });
    return {
      sizeBytes: this.#sizeBytes,
      etag: 'zeros',
      lastModified: undefined,
      part: range && { first, last },
      body,
    };
  }
}
