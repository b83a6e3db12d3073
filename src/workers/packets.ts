import type { Writable } from 'node:stream';

/**
 * Own packets over a socket instead of Node's IPC, which buffers messages of up to 4 GiB: a compromised worker can end
 * the main process by a message that does not deserialize, or an unexpected `NODE_HANDLE_ACK` (both seen on Node 20).
 *
 * Format: lengths of header and body as 32-bit big-endian integers, the header as JSON, the raw body.
 */

const PREFIX_BYTES = 8;

const NO_BYTES = Buffer.alloc(0);

export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** A packet whose header is parsed, but not validated. */
export interface Packet {
  readonly header: unknown;
  /** `undefined` if memory was missing, and the bytes were skipped. */
  readonly body: Uint8Array | undefined;
}

export interface PacketBounds {
  readonly maxHeaderBytes: number;
  /** Called for each packet: the bound depends on the running job. */
  readonly maxBodyBytes: () => number;
  /** Called before the memory of a packet is allocated. */
  readonly onPacket?: () => void;
}

/** Splits a byte stream into packets; buffers at most one. */
export class PacketReader {
  readonly #bounds: PacketBounds;
  readonly #prefix = new FillBuffer(Buffer.alloc(PREFIX_BYTES), PREFIX_BYTES);
  #header: FillBuffer<Buffer> | undefined;
  #body: FillBuffer<Buffer | undefined> | undefined;

  constructor(bounds: PacketBounds) {
    this.#bounds = bounds;
  }

  /** Yields each packet that the chunk completes. @throws ProtocolError for one beyond the bounds, or without JSON */
  *read(chunk: Uint8Array): Generator<Packet, void> {
    let rest = this.#prefix.take(chunk);
    while (this.#prefix.isFull) {
      this.#open();
      if (this.#header === undefined || this.#body === undefined) return;
      rest = this.#body.take(this.#header.take(rest));
      if (!this.#header.isFull || !this.#body.isFull) return;
      const packet = { header: parseJson(this.#header.bytes), body: this.#body.bytes };
      this.#prefix.empty();
      this.#header = undefined;
      this.#body = undefined;
      rest = this.#prefix.take(rest);
      yield packet;
    }
  }

  #open(): void {
    if (this.#header !== undefined) return;
    const prefix = this.#prefix.bytes;
    const headerBytes = prefix.readUInt32BE(0);
    const bodyBytes = prefix.readUInt32BE(4);
    if (headerBytes > this.#bounds.maxHeaderBytes || bodyBytes > this.#bounds.maxBodyBytes()) {
      throw new ProtocolError(`a packet of ${headerBytes} and ${bodyBytes} bytes`);
    }
    this.#bounds.onPacket?.();
    this.#header = new FillBuffer(Buffer.allocUnsafe(headerBytes), headerBytes);
    this.#body = bodyBytes === 0 ? new FillBuffer(NO_BYTES, 0) : allocateOrSkip(bodyBytes);
  }
}

/** A buffer that fills as bytes arrive; without `bytes`, it skips them. */
class FillBuffer<Bytes extends Buffer | undefined> {
  readonly bytes: Bytes;
  readonly #lengthBytes: number;
  #leftBytes: number;

  constructor(bytes: Bytes, lengthBytes: number) {
    this.bytes = bytes;
    this.#lengthBytes = lengthBytes;
    this.#leftBytes = lengthBytes;
  }

  get isFull(): boolean {
    return this.#leftBytes === 0;
  }

  empty(): void {
    this.#leftBytes = this.#lengthBytes;
  }

  /** Consumes the bytes of this buffer; returns the rest. */
  take(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.#leftBytes);
    this.bytes?.set(taken, this.bytes.length - this.#leftBytes);
    this.#leftBytes -= taken.length;
    return chunk.subarray(taken.length);
  }
}

/** Allocates outside of Node's pool: a cached result would retain its neighbours in the pool. */
function allocateOrSkip(lengthBytes: number): FillBuffer<Buffer | undefined> {
  try {
    return new FillBuffer(Buffer.allocUnsafeSlow(lengthBytes), lengthBytes);
  } catch (error) {
    // V8's error: "Array buffer allocation failed".
    if (error instanceof RangeError) return new FillBuffer(undefined, lengthBytes);
    throw error;
  }
}

/** Formats a packet for `writePacket`; does not copy the body. */
export function formatPacket(header: object, body: Uint8Array = NO_BYTES): Uint8Array[] {
  const json = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(json);
  const head = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes);
  head.writeUInt32BE(headerBytes, 0);
  head.writeUInt32BE(body.length, 4);
  head.write(json, PREFIX_BYTES);
  return body.length === 0 ? [head] : [head, body];
}

/**
 * Writes a packet in one system call, which wakes the other side once. Returns false to wait for `drain`.
 *
 * @param onSent called once no write reads the pieces any more
 */
export function writePacket(
  channel: Writable,
  pieces: readonly Uint8Array[],
  onSent?: () => void,
): boolean {
  channel.cork();
  for (const [index, piece] of pieces.entries()) {
    channel.write(piece, index === pieces.length - 1 ? onSent : undefined);
  }
  channel.uncork();
  return !channel.writableNeedDrain;
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (cause) {
    throw new ProtocolError('a header that is not JSON', { cause });
  }
}
