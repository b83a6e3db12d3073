import type { Writable } from 'node:stream';

/**
 * Frames of our own over a socket, not Node's IPC: that one buffers a message of up to 4 GiB, and a
 * worker in the hands of an attacker ends the main process with a message that does not deserialize,
 * or with a `NODE_HANDLE_ACK` that nothing had asked for (both seen on Node 20).
 *
 * A frame is the length of its header and of its body, in bytes, as 32-bit big-endian integers; the
 * header as JSON in UTF-8; then the body as it is.
 */

const PREFIX_BYTES = 8;

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
  #prefix = makeRoom(PREFIX_BYTES);
  #header: Filling<Buffer> | undefined;
  #body: Filling<Buffer | undefined> | undefined;

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
      this.#prefix = makeRoom(PREFIX_BYTES);
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
    this.#header = makeRoom(headerBytes);
    this.#body = makeRoomOrSkip(bodyBytes);
  }
}

/** Bytes of a known number, as they come in; `bytes` of `undefined` are passed over. */
class Filling<Bytes extends Buffer | undefined> {
  readonly bytes: Bytes;
  #leftBytes: number;

  constructor(bytes: Bytes, lengthBytes: number) {
    this.bytes = bytes;
    this.#leftBytes = lengthBytes;
  }

  get isFull(): boolean {
    return this.#leftBytes === 0;
  }

  /** Takes what still belongs to them; returns what is left over. */
  take(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.#leftBytes);
    this.bytes?.set(taken, this.bytes.length - this.#leftBytes);
    this.#leftBytes -= taken.length;
    return chunk.subarray(taken.length);
  }
}

/** Not from the pool: a result is kept for long, and would keep its neighbours. */
function makeRoom(lengthBytes: number): Filling<Buffer> {
  return new Filling(Buffer.allocUnsafeSlow(lengthBytes), lengthBytes);
}

function makeRoomOrSkip(lengthBytes: number): Filling<Buffer | undefined> {
  try {
    return makeRoom(lengthBytes);
  } catch (error) {
    // So V8 says it: "Array buffer allocation failed".
    if (error instanceof RangeError) return new Filling(undefined, lengthBytes);
    throw error;
  }
}

/** A frame as the pieces to be written one after the other (`writeFrame`); the body is not copied. */
export function formatFrame(header: object, body: Uint8Array = new Uint8Array()): Uint8Array[] {
  const json = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(json);
  const head = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes);
  head.writeUInt32BE(headerBytes, 0);
  head.writeUInt32BE(body.length, 4);
  head.write(json, PREFIX_BYTES);
  return body.length === 0 ? [head] : [head, body];
}

/** Writes a frame in one system call: each would wake the other side. */
export function writeFrame(channel: Writable, pieces: readonly Uint8Array[]): void {
  channel.cork();
  for (const piece of pieces) channel.write(piece);
  channel.uncork();
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (cause) {
    throw new ProtocolError('a header that is no JSON', { cause });
  }
}
