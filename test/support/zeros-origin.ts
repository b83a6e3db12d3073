import { Readable } from 'node:stream';
import type { Origin, OriginObject, ReadOptions } from '../../src/pipeline/ports.ts';
import { clampRange } from '../../src/storage/origin-object.ts';

const CHUNK = Buffer.alloc(65_536);

/** An origin that has every object: zeros, made only as they are read. */
export class ZerosOrigin implements Origin {
  readonly #sizeBytes: number;
  /** How many objects were opened. */
  reads = 0;
  /** Bodies that were handed out and are neither read to their end nor let go. */
  openBodies = 0;

  /** @param sizeBytes of each object */
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
  }

  async read(_key: string, { signal, range }: ReadOptions): Promise<OriginObject> {
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
      storedContentType: undefined,
      body,
    };
  }
}
