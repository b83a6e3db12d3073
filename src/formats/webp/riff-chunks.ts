import { type Extent, hasAscii, tagAt } from '../byte-reader.ts';
import { withPlainExif } from '../exif-block.ts';
import type { Orientation, Size } from '../image-header.ts';

/** Payload of a RIFF chunk (RFC 9649 §2.3), which may exceed the file. */
export interface RiffChunk extends Extent {
  /** Four ASCII characters, with trailing space: `VP8 `. */
  readonly fourCc: string;
}

/** Offset of the first chunk (RFC 9649 §2.4). */
export const FIRST_CHUNK = 12;

const HEADER_BYTES = 8;

export function isWebp(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'RIFF') && hasAscii(bytes, 8, 'WEBP');
}

/** Yields the chunks between two offsets; each begins at an even offset. Never throws. */
export function* iterateRiffChunks(
  bytes: Uint8Array,
  from: number,
  to: number = bytes.length,
): Generator<RiffChunk, void> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let position = from; position < to; ) {
    const start = position + HEADER_BYTES;
    const fourCc = tagAt(view, position);
    const end = start + (start <= view.length ? view.readUInt32LE(position + 4) : 0);
    yield { fourCc, start, end };
    position = nextChunk(end);
  }
}

/** Returns the offset of the next chunk, after the padding byte of an odd payload. */
export function nextChunk(end: number): number {
  return end + (end % 2);
}

/** Formats a chunk from parts, padded to an even length. */
export function formatChunk(fourCc: string, ...parts: readonly Uint8Array[]): Buffer {
  const payloadBytes = parts.reduce((sum, part) => sum + part.length, 0);
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(fourCc, 'latin1');
  header.writeUInt32LE(payloadBytes, 4);
  return Buffer.concat([header, ...parts, Buffer.alloc(payloadBytes & 1)]);
}

export function readWebpProfile(webp: Uint8Array): Uint8Array | undefined {
  for (const { fourCc, start, end } of iterateRiffChunks(webp, FIRST_CHUNK)) {
    if (fourCc === 'ICCP') return webp.subarray(start, end);
  }
  return undefined;
}

/** Returns the file with each EXIF chunk reduced to the orientation. */
export function withPlainWebpExif(webp: Uint8Array, orientation: Orientation): Uint8Array {
  const blocks: Extent[] = [];
  for (const { fourCc, start, end } of iterateRiffChunks(webp, FIRST_CHUNK)) {
    if (fourCc === 'EXIF') blocks.push({ start, end: Math.min(end, webp.length) });
  }
  return withPlainExif(webp, blocks, orientation);
}

/** Reads the size from the header of a `VP8 ` key frame (RFC 6386 §9.1) or a `VP8L` (RFC 9649 §3.4). */
export function readBitstreamSize(fourCc: string, payload: Uint8Array): Size | undefined {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  if (fourCc === 'VP8L') {
    if (view.byteLength < 5 || view.getUint8(0) !== 0x2f) return undefined;
    const bits = view.getUint32(1, true);
    if (bits >>> 29 !== 0) return undefined; // the version
    return { widthPx: 1 + (bits & 0x3fff), heightPx: 1 + ((bits >>> 14) & 0x3fff) };
  }
  const isKeyFrame = view.byteLength >= 10 && (view.getUint8(0) & 1) === 0;
  if (!isKeyFrame || !hasAscii(payload, 3, '\x9d\x01\x2a')) return undefined;
  // The upper two bits are a display scale, which WebP does not use.
  const widthPx = view.getUint16(6, true) & 0x3fff;
  const heightPx = view.getUint16(8, true) & 0x3fff;
  return widthPx === 0 || heightPx === 0 ? undefined : { widthPx, heightPx };
}
