import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { type Backend, brokenError } from './backend.ts';
import { isOriginFailure } from './open-body.ts';

/**
 * Passes a body on at its receiver's pace, and fails if it is shorter or longer than promised: after a
 * `Content-Length`, a client would wait for the rest for ever, or take what is too much for the next response
 * (RFC 9112 §6.3). Node does not check it.
 *
 * @param lengthBytes what `Content-Length` says; `undefined`: up to the bound of what is passed on
 * @returns fails with MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`, also where the source breaks off; destroying it
 *   destroys `body`
 */
export function passBody(
  backend: Backend,
  body: Readable,
  lengthBytes: number | undefined,
): Readable {
  return pipeline(body, new PassedBody(backend, lengthBytes), () => undefined);
}

class PassedBody extends Transform {
  readonly #backend: Backend;
  readonly #lengthBytes: number | undefined;
  /** Bytes that have come, and gone; who counts what was sent reads it. */
  passedBytes = 0;

  constructor(backend: Backend, lengthBytes: number | undefined) {
    super();
    this.#backend = backend;
    this.#lengthBytes = lengthBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { observer, maxPassedBytes } = this.#backend;
    this.passedBytes += chunk.length;
    observer?.noteReadBytes(chunk.length);
    if (this.passedBytes > (this.#lengthBytes ?? this.passedBytes)) done(this.#mismatch());
    else if (this.passedBytes > maxPassedBytes) done(new MediaError('MEDIA_TOO_LARGE'));
    else done(null, chunk);
  }

  override _flush(done: TransformCallback): void {
    done(this.passedBytes < (this.#lengthBytes ?? 0) ? this.#mismatch() : null);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const failure = error && brokenError(this.#backend, error);
    const isStopped = error?.name === 'AbortError';
    if (!isStopped && isOriginFailure(failure)) this.#backend.observer?.noteBrokenBody();
    done(failure);
  }

  #mismatch(): Error {
    return new Error(
      `${this.#lengthBytes} bytes were promised, and ${this.passedBytes} or more came.`,
    );
  }
}
