import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import type { Opened } from '../ports.ts';
import { type Backend, brokenError } from './backend.ts';
import { isStream, lengthOf, noteBroken, withFirstByteDeadline } from './open-body.ts';

/**
 * Reads the first bytes of an opened original within the deadline of the first byte; `passBody` sends them.
 *
 * @throws as `readPrefix`, and MediaError `ORIGIN_TIMEOUT`
 */
export function takePrefix(
  backend: Backend,
  opened: Opened,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const reading = withFirstByteDeadline(backend, signal, (within) =>
    readPrefix(backend, opened, count, within),
  );
  return reading.catch((error: unknown) => {
    if (isStream(opened.body)) opened.body.destroy();
    throw error;
  });
}

/**
 * Reads the first bytes of an opened original, and leaves the rest of the body open.
 *
 * @param count minimum number of bytes; fewer only where the body is shorter
 * @throws MediaError `ORIGIN_ERROR` if the transfer fails before; or `signal.reason`
 */
export async function readPrefix(
  backend: Backend,
  opened: Opened,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { body } = opened;
  if (!isStream(body)) return body;
  const lengthBytes = lengthOf(opened);
  const wanted = Math.min(count, lengthBytes ?? count);
  const chunks: Buffer[] = [];
  let taken = 0;
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk);
      taken += chunk.length;
      if (taken >= wanted) break;
    }
    const isShort = taken < wanted && lengthBytes !== undefined;
    if (isShort || taken > (lengthBytes ?? taken)) {
      throw new Error(`${lengthBytes} bytes were declared; ${taken} arrived.`);
    }
  } catch (error) {
    body.destroy();
    throw noteBroken(backend, error, signal);
  }
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}

/**
 * Passes a body on at its receiver's pace, and fails if it is shorter or longer than promised: after a
 * `Content-Length`, a client would wait for the rest for ever, or take what is too much for the next response
 * (RFC 9112 §6.3). Node does not check it.
 *
 * @param prefix the bytes that were taken out of the body
 * @param rest `undefined`: the prefix is all
 * @param lengthBytes value of `Content-Length`; `undefined`: up to the bound of what is passed on
 * @returns fails with MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`, also where the source breaks off; destroying it
 *   destroys `rest`
 */
export function passBody(
  backend: Backend,
  prefix: Uint8Array,
  rest: Readable | undefined,
  lengthBytes: number | undefined,
): Readable {
  const passed = new PassedBody(backend, lengthBytes);
  if (rest !== undefined) pipeline(rest, passed, () => undefined);
  // The rest only flows from the next tick on.
  if (prefix.length > 0) passed.write(prefix);
  if (rest === undefined) passed.end();
  return passed;
}

class PassedBody extends Transform {
  readonly #backend: Backend;
  readonly #lengthBytes: number | undefined;
  /** Bytes that were passed on; the listener's pace is measured by them. */
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
