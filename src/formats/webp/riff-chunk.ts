/** One chunk of a RIFF file (RFC 9649 §2.3); a whole WebP file is one itself, named `RIFF`. */
export interface RiffChunk {
  /** Four ASCII characters, trailing space included: `VP8 `. */
  readonly fourCc: string;
  /** A view of the parsed bytes, without header and padding. */
  readonly payload: Buffer;
}

const HEADER_BYTES = 8;

/**
 * Parses bytes that are a sequence of chunks and nothing else.
 * Throws a plain Error when a chunk runs past the end; a missing last padding byte is no fault.
 */
export function parseChunks(bytes: Uint8Array): RiffChunk[] {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: RiffChunk[] = [];
  let offset = 0;
  while (offset < view.length) {
    const start = offset + HEADER_BYTES;
    const end = start <= view.length ? start + view.readUInt32LE(offset + 4) : start;
    if (end > view.length) {
      throw new Error(`Expected a RIFF chunk at byte ${offset} but received ${view.length} bytes`);
    }
    chunks.push({
      fourCc: view.toString('latin1', offset, offset + 4),
      payload: view.subarray(start, end),
    });
    offset = end + (end & 1);
  }
  return chunks;
}

/** Formats one chunk whose payload is the parts in a row, padded to an even length with a zero. */
export function formatChunk(fourCc: string, ...parts: readonly Uint8Array[]): Buffer {
  const payloadBytes = parts.reduce((sum, part) => sum + part.length, 0);
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(fourCc, 'latin1');
  header.writeUInt32LE(payloadBytes, 4);
  return Buffer.concat([header, ...parts, Buffer.alloc(payloadBytes & 1)]);
}
