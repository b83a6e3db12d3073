import type { ErrorCode } from '../contract/errors.ts';
import type { RenderJob } from '../pipeline/render/render-job.ts';

/**
 * What the main process and a render worker say to each other, and its form on the wire.
 *
 * Frames of our own over a socket, not Node's IPC: that one buffers a message of up to 4 GiB, and a
 * worker in the hands of an attacker ends the main process with a message that does not deserialize,
 * or with a `NODE_HANDLE_ACK` that nobody asked for (both seen on Node 20).
 *
 * A frame is the length of its header and of its body, in bytes, as 32-bit big-endian integers; the
 * header as JSON in UTF-8; then the body as it is.
 */

/** File descriptor of the socket in a worker; 0 to 2 are the usual ones. */
export const CHANNEL_DESCRIPTOR = 3;

/** Longest header that a worker may send: a message and the cut-off detail of a failure. */
export const MAX_MESSAGE_HEADER_BYTES = 16 * 1024;

/** How much of a failure's detail a worker sends, in UTF-16 units; JSON makes 6 bytes of each at most. */
export const MAX_DETAIL_LENGTH = 2_000;

const PREFIX_BYTES = 8;

/** One job, as the main process sends it to a worker; a worker has one at a time. */
export interface RenderCommand {
  readonly original: Uint8Array;
  readonly job: RenderJob;
}

/** Errors that a worker may report; `INTERNAL_ERROR` is a bug of ours. */
export const FAILURE_CODES = [
  'UNPROCESSABLE_MEDIA',
  'MEDIA_TOO_LARGE',
  'INTERNAL_ERROR',
] as const satisfies readonly ErrorCode[];

/** One of `FAILURE_CODES`. */
export type FailureCode = (typeof FAILURE_CODES)[number];

/**
 * What a worker says: once that it is ready, then per job that it has begun, as soon as the first bytes of
 * it are there, and one answer.
 */
export type WorkerMessage = { readonly kind: 'ready' } | { readonly kind: 'begun' } | WorkerAnswer;

/** The end of a job; `rssBytes` is the worker's resident memory after it. */
export type WorkerAnswer =
  | { readonly kind: 'rendered'; readonly body: Uint8Array; readonly rssBytes: number }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      /** For the log; at most `MAX_DETAIL_LENGTH` long. */
      readonly detail: string;
      readonly rssBytes: number;
    };

/** The other side has sent what no frame or message is. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** A frame as it was read: its header parsed, nothing of it checked. */
export interface Frame {
  readonly header: unknown;
  /** `undefined` where there was no memory for it; then it was passed over. */
  readonly body: Uint8Array | undefined;
}

/** What a reader accepts, in bytes. */
export interface FrameBounds {
  readonly maxHeaderBytes: number;
  /** Asked at the beginning of each frame, since it depends on the job under way. */
  readonly maxBodyBytes: () => number;
  /** Called when a frame is coming, before there is room for it. */
  readonly onFrame?: () => void;
}

/** Cuts a stream of bytes into frames. Holds no more than one frame within the bounds. */
export class FrameReader {
  readonly #bounds: FrameBounds;
  #prefix = new Filling(PREFIX_BYTES);
  #header: Filling | undefined;
  #body: Filling | Skipping | undefined;

  constructor(bounds: FrameBounds) {
    this.#bounds = bounds;
  }

  /**
   * Takes the next bytes of the stream; gives each frame as soon as it is complete.
   *
   * @throws ProtocolError if a frame is larger than the bounds, or its header no JSON
   */
  *read(chunk: Uint8Array): Generator<Frame, void> {
    let rest = this.#prefix.take(chunk);
    while (this.#prefix.isFull) {
      this.#open();
      if (this.#header === undefined || this.#body === undefined) return;
      rest = this.#body.take(this.#header.take(rest));
      if (!this.#header.isFull || !this.#body.isFull) return;
      const frame = { header: parseJson(this.#header.bytes), body: this.#body.bytes };
      this.#prefix = new Filling(PREFIX_BYTES);
      this.#header = undefined;
      this.#body = undefined;
      rest = this.#prefix.take(rest);
      yield frame;
    }
  }

  /** Makes room for a frame, once its lengths are known and found to be within the bounds. */
  #open(): void {
    if (this.#header !== undefined) return;
    const prefix = this.#prefix.bytes;
    const headerBytes = prefix.readUInt32BE(0);
    const bodyBytes = prefix.readUInt32BE(4);
    if (headerBytes > this.#bounds.maxHeaderBytes || bodyBytes > this.#bounds.maxBodyBytes()) {
      throw new ProtocolError(`a frame of ${headerBytes} and ${bodyBytes} bytes`);
    }
    this.#bounds.onFrame?.();
    this.#header = new Filling(headerBytes);
    this.#body = makeRoom(bodyBytes);
  }
}

/** Bytes of a known number, as they come in. */
class Filling {
  /** Not from the pool: a result is kept for long, and would keep its neighbours. */
  readonly bytes: Buffer;
  #filled = 0;

  constructor(lengthBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(lengthBytes);
  }

  get isFull(): boolean {
    return this.#filled === this.bytes.length;
  }

  /** Takes what still fits; returns what is left over. */
  take(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.bytes.length - this.#filled);
    this.bytes.set(taken, this.#filled);
    this.#filled += taken.length;
    return chunk.subarray(taken.length);
  }
}

/** Bytes of a known number that there is no memory for: the stream goes on behind them. */
class Skipping {
  readonly bytes = undefined;
  #leftBytes: number;

  constructor(lengthBytes: number) {
    this.#leftBytes = lengthBytes;
  }

  get isFull(): boolean {
    return this.#leftBytes === 0;
  }

  /** Passes over what belongs to them; returns what is left over. */
  take(chunk: Uint8Array): Uint8Array {
    const rest = chunk.subarray(this.#leftBytes);
    this.#leftBytes -= chunk.length - rest.length;
    return rest;
  }
}

function makeRoom(lengthBytes: number): Filling | Skipping {
  try {
    return new Filling(lengthBytes);
  } catch (error) {
    // So V8 says it: "Array buffer allocation failed".
    if (error instanceof RangeError) return new Skipping(lengthBytes);
    throw error;
  }
}

/** A frame as the pieces to be written one after the other; the body is not copied. */
export function formatFrame(header: object, body: Uint8Array = new Uint8Array()): Uint8Array[] {
  const json = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(json.length, 0);
  prefix.writeUInt32BE(body.length, 4);
  return body.length === 0 ? [prefix, json] : [prefix, json, body];
}

/** A job on its way to a worker. */
export function formatCommand({ original, job }: RenderCommand): Uint8Array[] {
  return formatFrame({ job }, original);
}

/**
 * A job as a worker receives it. The main process is trusted: its form is not checked.
 *
 * @throws Error if there was no memory for the original
 */
export function parseCommand({ header, body }: Frame): RenderCommand {
  if (body === undefined) throw new Error('There is no memory for an original of that size.');
  return { original: body, job: (header as { readonly job: RenderJob }).job };
}

/** A message on its way to the main process. */
export function formatMessage(message: WorkerMessage): Uint8Array[] {
  if (message.kind !== 'rendered') return formatFrame(message);
  const { body, ...header } = message;
  return formatFrame(header, body);
}

/**
 * A message as the main process receives it. Its sender decodes what strangers upload, and may be in
 * their hands: nothing of it is believed.
 *
 * @throws ProtocolError if it is none of `WorkerMessage`, or there was no memory for it
 */
export function parseMessage({ header, body }: Frame): WorkerMessage {
  if (body === undefined) throw new ProtocolError('a body that there is no memory for');
  const { kind, code, detail, rssBytes } = isRecord(header) ? header : {};
  if (kind === 'rendered' && isByteCount(rssBytes) && body.length > 0) {
    return { kind, body, rssBytes };
  }
  if (body.length === 0) {
    if (kind === 'ready' || kind === 'begun') return { kind };
    const failure = FAILURE_CODES.find((known) => known === code);
    const isFailed = kind === 'failed' && failure !== undefined && isByteCount(rssBytes);
    if (isFailed && typeof detail === 'string') {
      return { kind, code: failure, detail: detail.slice(0, MAX_DETAIL_LENGTH), rssBytes };
    }
  }
  throw new ProtocolError('no known message');
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (cause) {
    throw new ProtocolError('a header that is no JSON', { cause });
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isByteCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
