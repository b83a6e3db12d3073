import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { MediaError } from '../../src/contract/errors.ts';
import type { Opened, OpenOptions, Source } from '../../src/pipeline/ports.ts';
import { clampRange, readLastModified } from '../../src/storage/origin-object.ts';

/** Originals in memory; counts reads. */
export class MemoryOrigin implements Source {
  readonly identity = 'tag';
  readonly #objects = new Map<string, { bytes: Uint8Array; etag: string; lastModified: Date }>();
  /** Number of times an object was opened, by key, including missing ones. */
  readonly reads = new Map<string, number>();
  /** Number of bytes requested of an object, by key. */
  readonly requestedBytes = new Map<string, number>();
  /** Error of every read, while it is set. */
  failure: Error | undefined;
  /** Changes an object before the origin returns it. */
  alter: (opened: Opened, key: string) => Opened | Promise<Opened> = (opened) => opened;
  /** Number of returned bodies that are still open. */
  openBodies = 0;

  put(key: string, bytes: Uint8Array, lastModified = new Date(0)): void {
    this.#objects.set(key, { bytes, etag: `crc-${crc32(bytes)}`, lastModified });
  }

  delete(key: string): void {
    this.#objects.delete(key);
  }

  async open(key: string, { signal, range }: OpenOptions): Promise<Opened> {
    signal.throwIfAborted();
    this.reads.set(key, (this.reads.get(key) ?? 0) + 1);
    if (this.failure !== undefined) throw this.failure;
    const stored = this.#objects.get(key);
    if (stored === undefined) throw new MediaError('UNKNOWN_MEDIA');
    const { bytes, etag, lastModified } = stored;
    const { first, last } = clampRange(range, bytes.length);
    this.requestedBytes.set(key, (this.requestedBytes.get(key) ?? 0) + last - first + 1);
    const part = bytes.subarray(first, last + 1);
    const body = Readable.from(chunksOf(part), { objectMode: false });
    this.openBodies += 1;
    body.once('close', () => {
      this.openBodies -= 1;
    });
    const object = {
      sizeBytes: bytes.length,
      etag,
      lastModified: readLastModified(lastModified),
      part: range && { first, last },
      body,
    };
    return this.alter(object, key);
  }
}

function* chunksOf(bytes: Uint8Array): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 65_536) {
    yield Buffer.from(bytes.subarray(start, start + 65_536));
  }
}
