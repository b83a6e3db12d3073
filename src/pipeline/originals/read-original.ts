import { once } from 'node:events';
import { addAbortSignal, type Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import type { ByteRange, Origin, OriginBytes, OriginObject, ReadOptions } from '../ports.ts';
import type { Semaphore } from '../semaphore.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';

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

/**
 * Opens an object within the first-byte deadline, which does not count the wait for the semaphore. The
 * object's body must be read or destroyed, unless the signal aborts.
 *
 * @param range all of it, where there is none
 * @throws what `Origin.read` throws, and MediaError `OVERLOADED`, `ORIGIN_TIMEOUT`
 */
export function openOriginal(
  access: OriginAccess,
  key: string,
  signal: AbortSignal,
  range?: ByteRange,
): Promise<OriginObject> {
  return openWithin(access, signal, (within) => access.origin.read(key, { signal: within, range }));
}

/** The same, for bytes that are to be held: they may be there at once. */
export function openForMemory(
  access: OriginAccess,
  key: string,
  signal: AbortSignal,
  range?: ByteRange,
): Promise<OriginObject | OriginBytes> {
  const { origin } = access;
  return openWithin<OriginObject | OriginBytes>(access, signal, (within) => {
    const options: ReadOptions = { signal: within, range };
    return origin.readForMemory?.(key, options) ?? origin.read(key, options);
  });
}

async function openWithin<Opened extends OriginObject | OriginBytes>(
  { limits, semaphore }: OriginAccess,
  signal: AbortSignal,
  open: (within: AbortSignal) => Promise<Opened>,
): Promise<Opened> {
  const leave = await semaphore.enter(signal);
  try {
    const object = await withFirstByteDeadline(limits, signal, async (within) => {
      const opened = await open(within);
      if ('bytes' in opened) return opened;
      // The reader of the body sees its errors; a body that is not read any more must not throw.
      opened.body.on('error', () => undefined);
      if (within.aborted) opened.body.destroy();
      // The deadline ends with the response; the body goes on for as long as its reader wants it.
      addAbortSignal(signal, opened.body);
      return opened;
    });
    if ('bytes' in object || object.body.closed) leave();
    else object.body.once('close', leave);
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
  object: OriginObject | OriginBytes,
  { maxOriginalBytes, wholeBodyTimeoutMs }: OriginLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { sizeBytes } = object;
  if (sizeBytes > maxOriginalBytes) {
    discard(object);
    const cause = new Error(`${sizeBytes} bytes, at most ${maxOriginalBytes}`);
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }
  if ('bytes' in object) return checkLength(object.bytes, sizeBytes);
  return withDeadline(wholeBodyTimeoutMs, signal, originTimeout, (within) =>
    collect(object.body, sizeBytes, within),
  );
}

/**
 * Reads an opened object to its end, into memory that is accounted for.
 *
 * @throws MediaError `OVERLOADED` if there is no room for it, and what `readOriginal` throws; it is let go of then
 */
export async function holdOriginal(
  object: OriginObject | OriginBytes,
  limits: OriginLimits,
  budget: MemoryBudget,
  signal: AbortSignal,
): Promise<Reservation & { readonly bytes: Uint8Array }> {
  let reservation: Reservation | undefined;
  try {
    // Larger ones are refused by the reading; there is nothing to hold for them.
    reservation = budget.reserve(Math.min(object.sizeBytes, limits.maxOriginalBytes));
    return { ...reservation, bytes: await readOriginal(object, limits, signal) };
  } catch (error) {
    discard(object);
    reservation?.release();
    throw error;
  }
}

/** Lets go of an object that is not read, or not to its end. */
function discard(object: OriginObject | OriginBytes): void {
  if ('body' in object) object.body.destroy();
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
): Promise<OriginBytes> {
  const range = { first: 0, last: count - 1 };
  const object = await openForMemory(access, key, signal, range).catch((error: unknown) => {
    // No range fits an empty object.
    const isEmpty = error instanceof MediaError && error.code === 'RANGE_NOT_SATISFIABLE';
    if (isEmpty) return openForMemory(access, key, signal);
    throw error;
  });
  const prefixBytes = Math.min(count, object.sizeBytes);
  if ('bytes' in object) return { ...object, bytes: checkLength(object.bytes, prefixBytes) };
  const { body, ...state } = object;
  const bytes = await withFirstByteDeadline(access.limits, signal, (within) =>
    collect(body, prefixBytes, within),
  );
  return { ...state, bytes };
}

/**
 * Takes the first bytes out of a body: as many as are asked for, some more if they come together, or all of a shorter
 * one.
 *
 * @throws what the body has failed with
 */
export async function takeFirst(body: Readable, count: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < count) {
    const chunk: Buffer | null = body.read();
    if (chunk !== null) {
      chunks.push(chunk);
      length += chunk.length;
      continue;
    }
    if (body.errored !== null) throw body.errored;
    if (body.readableEnded) break;
    if (body.destroyed) throw new Error('The body ended early.');
    await waitForMore(body);
  }
  return Buffer.concat(chunks);
}

async function waitForMore(body: Readable): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  const events = ['readable', 'end', 'close', 'error'];
  try {
    // `once` rejects with the error, which the caller finds for itself.
    await Promise.race(events.map((event) => once(body, event, { signal })));
  } catch {
  } finally {
    settled.abort();
  }
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
    throw wrongLength(sizeBytes, received);
  }
  return bytes ?? Buffer.alloc(0);
}

function checkLength(bytes: Uint8Array, sizeBytes: number): Uint8Array {
  if (bytes.byteLength !== sizeBytes) throw wrongLength(sizeBytes, bytes.byteLength);
  return bytes;
}

function wrongLength(promisedBytes: number, receivedBytes: number): MediaError {
  return new MediaError('ORIGIN_ERROR', {
    cause: new Error(`The origin promised ${promisedBytes} bytes; ${receivedBytes} or more came.`),
  });
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
