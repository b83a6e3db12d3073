import { addAbortSignal, type Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import type { ByteRange, Origin, OriginObject } from '../ports.ts';
import type { Semaphore } from '../semaphore.ts';

/** Deadlines and bounds of reading from the origin (contract §6). */
export interface OriginLimits {
  /** Until the origin responds, in milliseconds. */
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
  readonly semaphore: Semaphore;
}

/** What of an object is wanted: all of it unless there is a range; as `Origin.read` takes it. */
export interface Wanted {
  readonly range?: ByteRange;
  readonly isForMemory?: boolean;
}

/** The first bytes of an object, and what is known of it by them. */
export interface OriginalPrefix extends Omit<OriginObject, 'body'> {
  readonly bytes: Uint8Array;
}

/**
 * Opens an object within the first-byte deadline, which does not count the wait for the semaphore. The
 * object's body must be read or destroyed, unless the signal aborts.
 *
 * @throws what `Origin.read` throws, and MediaError `OVERLOADED`, `ORIGIN_TIMEOUT`
 */
export async function openOriginal(
  { origin, limits, semaphore }: OriginAccess,
  key: string,
  signal: AbortSignal,
  wanted: Wanted = {},
): Promise<OriginObject> {
  const leave = await semaphore.enter(signal);
  try {
    const object = await withFirstByteDeadline(limits, signal, async (within) => {
      const opened = await origin.read(key, { signal: within, ...wanted });
      // The reader of the body sees its errors; a body that is not read any more must not throw.
      opened.body.on('error', () => undefined);
      if (within.aborted) opened.body.destroy();
      // The deadline ends with the response; the body goes on for as long as its reader wants it.
      addAbortSignal(signal, opened.body);
      return opened;
    });
    if (object.body.closed) leave();
    object.body.once('close', leave);
    return object;
  } catch (error) {
    leave();
    throw error;
  }
}

/**
 * Reads an opened object to its end.
 *
 * @throws MediaError `MEDIA_TOO_LARGE` over the bound, `ORIGIN_TIMEOUT` after the deadline,
 *   `ORIGIN_ERROR` if the transfer fails or ends early: a cut body is never taken for an original
 */
export async function readOriginal(
  { body, sizeBytes }: OriginObject,
  { maxOriginalBytes, wholeBodyTimeoutMs }: OriginLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (sizeBytes > maxOriginalBytes) {
    body.destroy();
    const cause = new Error(`${sizeBytes} bytes, at most ${maxOriginalBytes}`);
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }
  return withDeadline(wholeBodyTimeoutMs, signal, originTimeout, (within) =>
    collect(body, sizeBytes, within),
  );
}

/**
 * Opens an object and reads its first bytes, and no more, within the first-byte deadline.
 *
 * @param count how many bytes, at most; fewer come back only where the object is shorter
 * @throws what `openOriginal` throws, and MediaError `ORIGIN_ERROR`
 */
export async function readPrefix(
  access: OriginAccess,
  key: string,
  count: number,
  signal: AbortSignal,
): Promise<OriginalPrefix> {
  const range = { first: 0, last: count - 1 };
  const object = await openOriginal(access, key, signal, { range }).catch((error: unknown) => {
    // No range fits an empty object.
    const isEmpty = error instanceof MediaError && error.code === 'RANGE_NOT_SATISFIABLE';
    if (isEmpty) return openOriginal(access, key, signal);
    throw error;
  });
  const { body, ...state } = object;
  const bytes = await withFirstByteDeadline(access.limits, signal, (within) =>
    collect(body, Math.min(count, object.sizeBytes), within),
  );
  return { ...state, bytes };
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
    throw originErrorFrom(error, signal);
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

/** @throws MediaError `ORIGIN_TIMEOUT` if the work takes longer than until the first byte */
export function withFirstByteDeadline<Result>(
  { firstByteTimeoutMs }: OriginLimits,
  signal: AbortSignal,
  work: (within: AbortSignal) => Promise<Result>,
): Promise<Result> {
  return withDeadline(firstByteTimeoutMs, signal, originTimeout, work);
}

function originTimeout(): MediaError {
  return new MediaError('ORIGIN_TIMEOUT');
}

/** What a transfer has failed with: why it was aborted, or else the origin's fault. */
export function originErrorFrom(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
}
