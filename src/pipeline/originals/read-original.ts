import { once } from 'node:events';
import { addAbortSignal, type Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import type { ByteRange, Origin, OriginObject } from '../ports.ts';
import type { Semaphore } from '../semaphore.ts';

/** Deadlines and bounds of reading from the origin (spec §6). */
export interface OriginLimits {
  /** Until the origin answers, in milliseconds. */
  readonly firstByteTimeoutMs: number;
  /** Until the last byte of an original that is read whole, in milliseconds. */
  readonly wholeBodyTimeoutMs: number;
  /** Largest original that is read whole, in bytes. */
  readonly maxOriginalBytes: number;
}

/** Where originals are read from, and how. */
export interface OriginAccess {
  readonly origin: Origin;
  readonly limits: OriginLimits;
  /** Bounds how many bodies are open at once. */
  readonly gate: Semaphore;
}

/** What of an object is wanted: all of it unless there is a range; as `Origin.read` takes it. */
export interface Wanted {
  readonly range?: ByteRange;
  readonly isForMemory?: boolean;
}

/**
 * Opens an object within the first-byte deadline, which does not count the wait at the gate. The
 * object's body must be read or destroyed, unless the signal aborts.
 *
 * @throws what `Origin.read` throws, and MediaError `OVERLOADED`, `ORIGIN_TIMEOUT`
 */
export async function openOriginal(
  { origin, limits, gate }: OriginAccess,
  key: string,
  signal: AbortSignal,
  wanted: Wanted = {},
): Promise<OriginObject> {
  const leave = await gate.enter(signal);
  try {
    const object = await openInTime(origin, key, limits, signal, wanted);
    if (object.body.closed) leave();
    object.body.once('close', leave);
    return object;
  } catch (error) {
    leave();
    throw error;
  }
}

function openInTime(
  origin: Origin,
  key: string,
  limits: OriginLimits,
  signal: AbortSignal,
  wanted: Wanted,
): Promise<OriginObject> {
  return withDeadline(limits.firstByteTimeoutMs, signal, originTimeout, async (within) => {
    const object = await origin.read(key, { signal: within, ...wanted });
    // Whoever reads the body sees its errors; a body that nobody reads any more must not throw.
    object.body.on('error', () => undefined);
    if (within.aborted) object.body.destroy();
    // The deadline ends with the answer; the body goes on for as long as its reader wants it.
    addAbortSignal(signal, object.body);
    return object;
  });
}

/**
 * Reads an opened object to its end.
 *
 * @throws MediaError `MEDIA_TOO_LARGE` over the bound, `ORIGIN_TIMEOUT` after the deadline,
 *   `ORIGIN_ERROR` if the transfer fails or ends early: a cut body is never taken for an original
 */
export async function readOriginal(
  object: OriginObject,
  limits: OriginLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { body, sizeBytes } = object;
  if (sizeBytes > limits.maxOriginalBytes) {
    body.destroy();
    throw new MediaError('MEDIA_TOO_LARGE', {
      cause: new Error(`${sizeBytes} bytes, at most ${limits.maxOriginalBytes}`),
    });
  }
  return withDeadline(limits.wholeBodyTimeoutMs, signal, originTimeout, (within) =>
    collect(body, sizeBytes, within),
  );
}

/**
 * Opens an object and reads its first bytes, and no more, within the first-byte deadline.
 *
 * @param count how many bytes, at most; fewer come back only where the object is shorter
 * @returns the bytes, and the object without a body
 * @throws what `openOriginal` throws, and MediaError `ORIGIN_ERROR`
 */
export async function readPrefix(
  access: OriginAccess,
  key: string,
  count: number,
  signal: AbortSignal,
): Promise<{ readonly object: Omit<OriginObject, 'body'>; readonly prefix: Uint8Array }> {
  const range = { first: 0, last: count - 1 };
  const object = await openOriginal(access, key, signal, { range }).catch((error: unknown) => {
    // No range fits an empty object.
    const isEmpty = error instanceof MediaError && error.code === 'RANGE_NOT_SATISFIABLE';
    if (isEmpty) return openOriginal(access, key, signal);
    throw error;
  });
  const length = Math.min(count, object.sizeBytes);
  const { firstByteTimeoutMs } = access.limits;
  const prefix = await withDeadline(firstByteTimeoutMs, signal, originTimeout, (within) =>
    collect(object.body, length, within),
  );
  return { object, prefix };
}

/** All bytes of a body that must be so many. */
async function collect(body: Readable, sizeBytes: number, signal: AbortSignal): Promise<Buffer> {
  addAbortSignal(signal, body);
  let bytes: Buffer | undefined;
  let received = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (received + chunk.length > sizeBytes) break;
      // A part would keep the whole, such as the pool of small buffers.
      const isAlone = chunk.length === chunk.buffer.byteLength;
      if (isAlone && chunk.length === sizeBytes) bytes = chunk;
      else {
        bytes ??= Buffer.allocUnsafeSlow(sizeBytes);
        chunk.copy(bytes, received);
      }
      received += chunk.length;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
  }
  signal.throwIfAborted();
  if (received !== sizeBytes || !body.readableEnded) {
    body.destroy();
    throw new MediaError('ORIGIN_ERROR', {
      cause: new Error(`The origin promised ${sizeBytes} bytes; ${received} or more came.`),
    });
  }
  return bytes ?? Buffer.alloc(0);
}

/**
 * Looks at the first bytes of an object, within the first-byte deadline, without taking them out of
 * its body.
 *
 * @param count how many bytes, at most; fewer come back only where the object is shorter
 * @throws MediaError `ORIGIN_ERROR` if the transfer fails or ends before, `ORIGIN_TIMEOUT`
 */
export async function peekOriginal(
  object: OriginObject,
  count: number,
  limits: OriginLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await withDeadline(limits.firstByteTimeoutMs, signal, originTimeout, () =>
      peek(object, Math.min(count, object.sizeBytes)),
    );
  } catch (error) {
    object.body.destroy();
    throw error;
  }
}

async function peek({ body }: OriginObject, count: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < count) {
    const chunk: unknown = body.read();
    if (chunk instanceof Buffer) {
      chunks.push(chunk);
      length += chunk.length;
    } else {
      await nextChunk(body);
    }
  }
  const prefix = Buffer.concat(chunks);
  if (prefix.length > 0) body.unshift(prefix);
  return prefix.subarray(0, count);
}

async function nextChunk(body: Readable): Promise<void> {
  if (body.errored) throw new MediaError('ORIGIN_ERROR', { cause: body.errored });
  if (body.readableEnded || body.destroyed) {
    throw new MediaError('ORIGIN_ERROR', { cause: new Error('The body ended early.') });
  }
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([
      once(body, 'readable', { signal }),
      once(body, 'end', { signal }),
      once(body, 'close', { signal }),
    ]);
  } catch (error) {
    throw error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
  } finally {
    settled.abort();
  }
}

function originTimeout(): MediaError {
  return new MediaError('ORIGIN_TIMEOUT');
}
