import { pipeline, Readable, Transform, type TransformCallback } from 'node:stream';
import { MediaError } from '../contract/errors.ts';

/** A body that counts how much of it has been taken. */
export interface MeteredBody {
  readonly passedBytes: number;
}

/** Whether a body, of whatever sort, counts how much of it has been taken. */
export function isMetered(body: unknown): body is MeteredBody {
  return typeof body === 'object' && body !== null && 'passedBytes' in body;
}

/** What is sent in one piece: most images. In pieces of 64 KiB a hit of 660 kB took 0.40 ms, not 0.26. */
export const PIECE_BYTES = 262_144;

/**
 * A body in memory, to be sent at its receiver's pace. As a whole it would be copied: encrypted at once,
 * for each receiver, and kept until the slowest of them has taken it.
 */
export class BufferPieces extends Readable implements MeteredBody {
  readonly #bytes: Buffer;
  /** How much its receiver has asked for. */
  passedBytes = 0;

  constructor(bytes: Buffer) {
    super({ highWaterMark: PIECE_BYTES });
    this.#bytes = bytes;
  }

  override _read(): void {
    const piece = this.#bytes.subarray(this.passedBytes, this.passedBytes + PIECE_BYTES);
    this.passedBytes += piece.length;
    this.push(piece.length === 0 ? null : piece);
  }
}

/**
 * Passes a body of the origin on, at its receiver's pace, and fails if it is shorter or longer than
 * promised: after a `Content-Length`, a client would wait for the rest for ever, or take what is too
 * much for the next response (RFC 9112 §6.3). Node does not check it.
 *
 * @param lengthBytes what `Content-Length` says
 * @returns fails with MediaError `ORIGIN_ERROR`, also where the origin breaks off; destroying it
 *   destroys `body`
 */
export function exactLength(body: Readable, lengthBytes: number): Readable {
  return pipeline(body, new ExactLength(lengthBytes), () => undefined);
}

class ExactLength extends Transform implements MeteredBody {
  readonly #lengthBytes: number;
  /** How much has come, and gone. */
  passedBytes = 0;

  constructor(lengthBytes: number) {
    super();
    this.#lengthBytes = lengthBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.passedBytes += chunk.length;
    if (this.passedBytes > this.#lengthBytes) done(this.#mismatch());
    else done(null, chunk);
  }

  override _flush(done: TransformCallback): void {
    done(this.passedBytes < this.#lengthBytes ? this.#mismatch() : null);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isForeign = error !== null && !(error instanceof MediaError);
    done(isForeign ? new MediaError('ORIGIN_ERROR', { cause: error }) : error);
  }

  #mismatch(): Error {
    return new Error(
      `The origin promised ${this.#lengthBytes} bytes but sent ${this.passedBytes}.`,
    );
  }
}
