import { crc32, deflateSync } from 'node:zlib';
import { ByteReader, corruptMedia, type Extent, hasAscii, tagAt } from '../byte-reader.ts';
import { withPlainExif } from '../exif-block.ts';
import type { Orientation, Size } from '../image-header.ts';

const signature = '\x89PNG\r\n\x1a\n';

/** Payload of a chunk (3rd edition §5.3), which may exceed the file; the CRC follows. */
export interface PngChunk extends Extent {
  readonly type: string;
}

export function isPng(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, signature);
}

/** Yields the chunks of a PNG to the end of the file. Never throws. */
export function* iteratePngChunks(png: Uint8Array): Generator<PngChunk, void> {
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  for (let position = signature.length; position < bytes.length; ) {
    const start = position + 8;
    const type = tagAt(bytes, position + 4);
    const end = start + (start <= bytes.length ? bytes.readUInt32BE(position) : 0);
    yield { type, start, end };
    position = end + 4;
  }
}

export function formatPngChunk(type: string, payload: readonly Uint8Array[]): Buffer {
  const [length, crc] = [Buffer.alloc(4), Buffer.alloc(4)];
  const chunk = Buffer.concat([length, Buffer.from(type, 'latin1'), ...payload, crc]);
  chunk.writeUInt32BE(chunk.length - 12);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

export function formatPng(chunks: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from(signature, 'latin1'), ...chunks]);
}

export function hasValidCrc(png: ByteReader, chunk: PngChunk): boolean {
  return crcOf(png.bytes, chunk) === png.u32be(chunk.end);
}

/** Checks the CRC of all image data, like libpng. @throws MediaError `UNPROCESSABLE_MEDIA` */
export function checkDataCrcs(png: Uint8Array): void {
  const reader = new ByteReader(png, 'PNG');
  for (const chunk of iteratePngChunks(png)) {
    if (chunk.type === 'IEND') return;
    if (chunk.type === 'IDAT' && !hasValidCrc(reader, chunk)) throw crcError(chunk);
  }
}

export function crcError({ type, start }: PngChunk): Error {
  return corruptMedia(`PNG: wrong CRC of ${type} at ${start - 8}`);
}

export function withPlainPngExif(png: Uint8Array, orientation: Orientation): Uint8Array {
  const chunks = [...iteratePngChunks(png)].filter(
    ({ type, end }) => type === 'eXIf' && end + 4 <= png.length,
  );
  const plain = withPlainExif(png, chunks, orientation);
  const view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
  for (const chunk of chunks) view.setUint32(chunk.end, crcOf(plain, chunk));
  return plain;
}

function crcOf(png: Uint8Array, { start, end }: PngChunk): number {
  return crc32(png.subarray(start - 4, end));
}

interface StoredPixels extends Size {
  readonly channels: keyof typeof COLOUR_TYPES;
  readonly data: Uint8Array;
}

/** Colour types (PNG 3rd edition §11.2.1) by channels. */
const COLOUR_TYPES = { 1: 0, 2: 4, 3: 2, 4: 6 };

/** Wraps pixels in an uncompressed PNG, the only way to pass libvips an ICC profile for pixels in memory. */
export function formatStoredPng(pixels: StoredPixels, profile: Uint8Array | undefined): Buffer {
  const { widthPx, heightPx, channels, data } = pixels;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(widthPx, 0);
  header.writeUInt32BE(heightPx, 4);
  header.set([8, COLOUR_TYPES[channels]], 8);
  const rowBytes = widthPx * channels;
  // Each row begins with its filter type, 0 for none.
  const filtered = Buffer.alloc((1 + rowBytes) * heightPx);
  for (let row = 0; row < heightPx; row += 1) {
    const start = row * rowBytes;
    filtered.set(data.subarray(start, start + rowBytes), start + row + 1);
  }
  const name = Buffer.from('profile\0\0', 'latin1');
  return formatPng([
    formatPngChunk('IHDR', [header]),
    ...(profile === undefined ? [] : [formatPngChunk('iCCP', [name, deflateSync(profile)])]),
    formatPngChunk('IDAT', [deflateSync(filtered, { level: 0 })]),
    formatPngChunk('IEND', []),
  ]);
}
