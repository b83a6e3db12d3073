import { addAbortSignal, type Readable } from 'node:stream';
import { isOriginFailure, MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import type { OriginOutcome } from '../meter.ts';
import type { Opened, OpenOptions, Unchanged } from '../ports.ts';
import { type Backend, brokenError, sourceTimeout } from './backend.ts';
import { SNIFF_BYTES } from './content-sniff.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';

/** An original in memory, until its reservation is freed. */
export interface BufferedBytes extends Reservation {
  readonly bytes: Uint8Array;
  /** Whether no other code has the buffer, so that the last user may free it. */
  readonly isExclusive: boolean;
}

/** A buffered original; or the beginning of one that is too large, with the rest of its body. */
export interface BufferedBeginning extends BufferedBytes {
  readonly rest: Readable | undefined;
}

/** Minimum size of a buffer without a trusted length. */
const MIN_BUFFER_BYTES = 64 * 1024;

/**
 * Opens an original within the deadline of the first byte, which excludes the wait for a slot. The body must be read or
 * discarded, unless the signal aborts.
 *
 * @returns the complete file for a range from 0 of an empty original
 * @throws errors of `Source.open`; MediaError `OVERLOADED`, `ORIGIN_TIMEOUT`
 */
export async function openBody(
  backend: Backend,
  key: string,
  options: OpenOptions,
): Promise<Opened | Unchanged> {
  const { signal, isBuffered = false, range } = options;
  const { observer, reads, streams } = backend;
  const free = await (isBuffered ? reads : streams)?.acquire(signal);
  try {
    const opened = await withFirstByteDeadline(backend, signal, async (within) => {
      const found = await backend.source.open(key, { ...options, signal: within });
      if (isStream(found.body)) {
        // An abandoned body must not throw.
        found.body.on('error', () => undefined);
        if (within.aborted) found.body.destroy();
        // The deadline applies to the response only; the body continues.
        addAbortSignal(signal, found.body);
      }
      return found;
    });
    observer?.noteOutcome('found');
    const { body } = opened;
    if (isStream(body) && !body.closed) body.once('close', () => free?.());
    else free?.();
    return opened;
  } catch (error) {
    free?.();
    observer?.noteOutcome(outcomeOf(error, signal.aborted), error);
    const isEmpty = error instanceof MediaError && error.code === 'RANGE_NOT_SATISFIABLE';
    if (!isEmpty || range?.first !== 0) throw error;
    return openBody(backend, key, { ...options, range: undefined });
  }
}

export async function openContent(
  backend: Backend,
  key: string,
  options: Omit<OpenOptions, 'known'>,
): Promise<Opened> {
  return contentOf(backend, await openBody(backend, key, options));
}

/** @throws MediaError `ORIGIN_ERROR` for an unexpected confirmation */
export function contentOf(backend: Backend, opened: Opened | Unchanged): Opened {
  if (opened.body !== undefined) return opened;
  throw brokenError(backend, new Error('The source reported no change of an unknown state.'));
}

function outcomeOf(error: unknown, isStopped: boolean): OriginOutcome {
  const code = error instanceof MediaError ? error.code : undefined;
  if (isStopped) return 'stopped';
  if (code === 'ORIGIN_TIMEOUT') return 'timeout';
  if (code === 'UNKNOWN_MEDIA') return 'missing';
  return code === 'RANGE_NOT_SATISFIABLE' ? 'found' : 'failed';
}

/** @throws MediaError `ORIGIN_TIMEOUT` after the deadline of the first byte */
export function withFirstByteDeadline<Result>(
  backend: Backend,
  signal: AbortSignal,
  work: (within: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { firstByteTimeoutMs } = backend;
  if (firstByteTimeoutMs === undefined) return work(signal);
  const onTimeout = (): MediaError =>
    sourceTimeout(backend, `No byte in ${firstByteTimeoutMs} ms.`);
  return withDeadline(firstByteTimeoutMs, signal, onTimeout, work);
}

/** @throws MediaError `ORIGIN_TIMEOUT` after the deadline of a body */
export async function withBodyDeadline<Result>(
  backend: Backend,
  signal: AbortSignal,
  work: (within: AbortSignal) => Promise<Result>,
  discardLate?: (result: Result) => void,
): Promise<Result> {
  const { bodyTimeoutMs: timeoutMs } = backend;
  const onTimeout = (): MediaError =>
    sourceTimeout(backend, `The body took longer than ${timeoutMs} ms.`);
  let working: Promise<Result> | undefined;
  try {
    return await withDeadline(timeoutMs, signal, onTimeout, (within) => {
      working = work(within);
      return working;
    });
  } catch (error) {
    // The work may have ended at the same moment.
    working?.then(discardLate, () => undefined);
    throw error;
  }
}

/**
 * Buffers an opened original; `budget` accounts for its memory. Destroys the body after an error.
 *
 * @param prefix bytes already read from the body
 * @throws MediaError `MEDIA_TOO_LARGE`, `OVERLOADED`, `ORIGIN_ERROR` if the transfer fails or its length differs from
 *   the declared one; or `signal.reason`
 */
export async function bufferBody(
  backend: Backend,
  opened: Opened,
  budget: MemoryBudget,
  signal: AbortSignal,
  prefix?: Uint8Array,
): Promise<BufferedBytes> {
  const buffered = await bufferBeginning(backend, opened, budget, signal, prefix);
  if (buffered.rest === undefined) return buffered;
  buffered.rest.destroy();
  buffered.free();
  throw tooLarge(buffered.bytes.byteLength, backend.maxOriginalBytes);
}

/** Buffers like `bufferBody`, but returns the rest of a body above the limit, unless its length was declared. */
export async function bufferBeginning(
  backend: Backend,
  opened: Opened,
  budget: MemoryBudget,
  signal: AbortSignal,
  prefix: Uint8Array = new Uint8Array(),
): Promise<BufferedBeginning> {
  const { isExternal, maxOriginalBytes } = backend;
  const { body, sizeBytes } = opened;
  let reservation: Reservation | undefined;
  try {
    if ((sizeBytes ?? 0) > maxOriginalBytes) throw tooLarge(sizeBytes ?? 0, maxOriginalBytes);
    reservation = budget.reserve(isExternal ? 0 : (sizeBytes ?? 0));
    if (!isStream(body)) {
      backend.observer?.noteReadBytes(body.byteLength);
      checkLength(backend, sizeBytes, body.byteLength);
      return {
        ...reservation,
        bytes: body,
        isExclusive: opened.isExclusive ?? false,
        rest: undefined,
      };
    }
    const collected = await collect(backend, opened, body, reservation, signal, prefix);
    return { ...reservation, ...collected };
  } catch (error) {
    if (isStream(body)) body.destroy();
    reservation?.free();
    throw error;
  }
}

/** Collects a body up to the maximum size. Without a trusted length, the buffer grows as bytes arrive. */
async function collect(
  backend: Backend,
  { sizeBytes, isExclusive: isChunkExclusive = false }: Opened,
  body: Readable,
  reservation: Reservation,
  signal: AbortSignal,
  prefix: Uint8Array,
): Promise<Pick<BufferedBeginning, 'bytes' | 'isExclusive' | 'rest'>> {
  const { isExternal, maxOriginalBytes, observer } = backend;
  addAbortSignal(signal, body);
  let bytes: Uint8Array = new Uint8Array();
  let isExclusive = true;
  let received = 0;
  const add = (chunk: Uint8Array): void => {
    observer?.noteReadBytes(chunk.length);
    const count = received + chunk.length;
    if (count > (sizeBytes ?? count)) checkLength(backend, sizeBytes, count);
    // A chunk that is the complete body, and not from a pool, is not copied.
    if (chunk.length === sizeBytes && chunk.length === chunk.buffer.byteLength) {
      bytes = chunk;
      isExclusive = isChunkExclusive;
    } else {
      if (count > bytes.length) {
        const grown = isExternal ? Math.max(MIN_BUFFER_BYTES, count, 2 * bytes.length) : sizeBytes;
        reservation.grow(grown ?? count);
        const larger = Buffer.allocUnsafeSlow(grown ?? count);
        larger.set(bytes.subarray(0, received));
        bytes = larger;
      }
      bytes.set(chunk, received);
    }
    received = count;
  };
  try {
    add(prefix);
    if (!body.readableEnded) {
      for await (const chunk of body.iterator({ destroyOnReturn: false })) {
        add(chunk);
        if (received > maxOriginalBytes)
          return { bytes: bytes.subarray(0, received), isExclusive, rest: body };
      }
    }
  } catch (error) {
    throw noteBroken(backend, error, signal);
  }
  signal.throwIfAborted();
  checkLength(backend, sizeBytes, received);
  // Cached buffers must have no spare capacity.
  const complete = received === bytes.length ? bytes : Uint8Array.from(bytes.subarray(0, received));
  return { bytes: complete, isExclusive, rest: undefined };
}

/** Returns the error of an incomplete body, and counts it. */
export function noteBroken(backend: Backend, error: unknown, signal: AbortSignal): unknown {
  const failure = signal.aborted ? signal.reason : brokenError(backend, error);
  if (isOriginFailure(failure)) backend.observer?.noteBrokenBody();
  return failure;
}

function tooLarge(count: number, maxBytes: number): MediaError {
  const cause = new Error(`${count} bytes or more, at most ${maxBytes}`);
  return new MediaError('MEDIA_TOO_LARGE', { cause });
}

function checkLength(backend: Backend, declared: number | undefined, received: number): void {
  if (declared === undefined || declared === received) return;
  const message = `${declared} bytes were declared; ${received} or more arrived.`;
  throw brokenError(backend, new Error(message));
}

export function lengthOf({ part, sizeBytes }: Opened): number | undefined {
  return part === undefined ? sizeBytes : part.last - part.first + 1;
}

/** Discards a body. A short one is read to its end, so that its connection can be reused. */
export function discard({ observer }: Backend, opened: Opened): void {
  const { body } = opened;
  const lengthBytes = lengthOf(opened) ?? Number.POSITIVE_INFINITY;
  if (isStream(body) && lengthBytes > SNIFF_BYTES) {
    body.destroy();
    return;
  }
  observer?.noteReadBytes(lengthBytes);
  if (isStream(body)) body.resume();
}

export function isStream(body: Opened['body'] | undefined): body is Readable {
  return body !== undefined && !(body instanceof Uint8Array);
}
