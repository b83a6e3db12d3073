import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';

/**
 * Passes a body of the origin on, at its receiver's pace, and fails if it is shorter or longer than
 * promised: after a `Content-Length`, a client would wait for the rest for ever, or take what is too
 * much for the next answer (RFC 9112 §6.3). Node does not check it.
 *
 * @param lengthBytes what `Content-Length` says
 * @returns fails with MediaError `ORIGIN_ERROR`, also where the origin breaks off; destroying it
 *   destroys `body`
 */
export function exactLength(body: Readable, lengthBytes: number): Readable {
  return pipeline(body, new ExactLength(lengthBytes), () => undefined);
}

class ExactLength extends Transform {
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
