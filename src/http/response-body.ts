import { Readable } from 'node:stream';

/** A body that counts how much of it has been taken. */
export interface MeteredBody {
  readonly passedBytes: number;
}

/** Whether a body, of whatever sort, counts how much of it has been taken. */
export function isMetered(body: unknown): body is MeteredBody {
  return typeof body === 'object' && body !== null && 'passedBytes' in body;
}

/** Largest body that is sent in one piece: most images. In pieces of 64 KiB a hit of 660 kB took 0.40 ms, not 0.26. */
export const PIECE_BYTES = 262_144;

/**
 * A body in memory, to be sent at its receiver's pace. As a whole it would be copied: encrypted at once,
 * for each receiver, and kept until the slowest of them has taken it.
 */
export class BufferPieces extends Readable implements MeteredBody {
  readonly #bytes: Buffer;
  /** Bytes that the receiver has asked for. */
  passedBytes = 0;

  constructor(bytes: Buffer) {
    super({ highWaterMark: PIECE_BYTES });
    this.#bytes = bytes;
  }

  override _read(): void {
    const piece = this.#bytes.subarray(this.passedBytes, this.passedBytes + PIECE_BYTES);
    this.passedBytes += piece.length;
    this.push(piece.length === 0 ? null : piece);
  }
}
