import { pipeline, Readable, Transform, type TransformCallback } from 'node:stream';
import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import type { Opened } from '../ports.ts';
import { type Backend, brokenError } from './backend.ts';
import { isStream, lengthOf, noteBroken, withFirstByteDeadline } from './open-body.ts';

/** Size of chunks of forwarded bytes in memory. */
const SLICE_BYTES = 64 * 1024;

/** Reads first bytes as `readAtLeast`, within the deadline of the first byte. @throws MediaError also `ORIGIN_TIMEOUT` */
export function readPrefix(
  backend: Backend,
  opened: Opened,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const reading = withFirstByteDeadline(backend, signal, (within) =>
    readAtLeast(backend, opened, count, within),
  );
  return reading.catch((error: unknown) => {
    if (isStream(opened.body)) opened.body.destroy();
    throw error;
  });
}

/**
 * Reads the first bytes of an opened original, and leaves the rest open. Returns a body in memory completely.
 *
 * @param count minimum number of bytes; fewer only if the body is shorter
 * @throws MediaError `ORIGIN_ERROR`; or `signal.reason`
 */
export async function readAtLeast(
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
  let received = 0;
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk);
      received += chunk.length;
      if (received >= wanted) break;
    }
    const isShort = received < wanted && lengthBytes !== undefined;
    if (isShort || received > (lengthBytes ?? received)) {
      throw new Error(`${lengthBytes} bytes were declared; ${received} arrived.`);
    }
  } catch (error) {
    body.destroy();
    throw noteBroken(backend, error, signal);
  }
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}

/**
 * Forwards a body with backpressure, and fails if its length differs from `Content-Length`: a client would wait for the
 * rest, or read the surplus as the next response (RFC 9112 §6.3). Node does not check this.
 *
 * @param prefix bytes already read from the body
 * @param rest omit if the prefix is the complete body
 * @param lengthBytes `Content-Length`. Omit to forward up to `maxForwardedBytes`
 * @returns fails with MediaError `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`; destroying it destroys `rest`
 */
export function forwardBody(
  backend: Backend,
  prefix: Uint8Array,
  rest: Readable | undefined,
  lengthBytes: number | undefined,
): Readable {
  const passed = new ForwardedBody(backend, lengthBytes);
  if (rest !== undefined) pipeline(rest, passed, () => undefined);
  if (prefix.length > 0) passed.write(prefix);
  if (rest === undefined) passed.end();
  return passed;
}

/** Forwards bytes in memory in slices, since a response would buffer a single chunk regardless of the client's pace. */
export function forwardBytes(backend: Backend, bytes: Uint8Array): Readable {
  const slices = Readable.from(slicesOf(bytes), { objectMode: false });
  return forwardBody({ ...backend, observer: undefined }, new Uint8Array(), slices, bytes.length);
}

export function joinBody(received: Uint8Array, rest: Readable): Readable {
  const join = async function* () {
    yield* slicesOf(received);
    yield* rest as AsyncIterable<Uint8Array>;
  };
  return Readable.from(join(), { objectMode: false });
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let first = 0; first < bytes.length; first += SLICE_BYTES) {
    yield bytes.subarray(first, first + SLICE_BYTES);
  }
}

class ForwardedBody extends Transform {
  readonly #backend: Backend;
  readonly #lengthBytes: number | undefined;
  /** Public, since the listener measures the client's pace by it. */
  passedBytes = 0;

  constructor(backend: Backend, lengthBytes: number | undefined) {
    super();
    this.#backend = backend;
    this.#lengthBytes = lengthBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { observer, maxForwardedBytes } = this.#backend;
    this.passedBytes += chunk.length;
    observer?.noteReadBytes(chunk.length);
    if (this.passedBytes > (this.#lengthBytes ?? this.passedBytes)) done(this.#mismatch());
    else if (this.passedBytes > maxForwardedBytes) done(new MediaError('MEDIA_TOO_LARGE'));
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
      `${this.#lengthBytes} bytes were declared; ${this.passedBytes} or more arrived.`,
    );
  }
}
