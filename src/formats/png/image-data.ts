import { createInflate } from 'node:zlib';
import { ByteReader, corruptMedia } from '../byte-reader.ts';
import type { Size } from '../image-facts.ts';
import { type PngChunk, walkPngChunks } from './png-chunks.ts';

/** What IHDR says of a pixel (PNG 3rd edition §11.2.1). */
export interface PixelCoding {
  readonly colourType: number;
  readonly bitDepth: number;
}

/** Samples a pixel by colour type (PNG 3rd edition §11.2.1). */
const channels = [1, 0, 3, 1, 2, 0, 4];

/** What deflate makes of a byte at most: 258 bytes of each 2 bits (RFC 1951 §3.2.5). */
const maxExpansion = 1_032;

/** What image data may have behind the last row, in bytes, besides as much as they have before it. */
const spareBytes = 64 * 1024;

/** Image data are unpacked in pieces of this size, in bytes, to be counted. */
const pieceBytes = 256 * 1024;

/**
 * Compressed image data of a still that are not unpacked to be counted, in bytes: as many as it has pixels' bytes,
 * which is more than honest ones have, within these bounds. What is beyond costs 10 ms at the lower one and 1.3 s at
 * the upper one (0.15 ns a byte, of nothing but zeros); to unpack a large one costs a quarter of what its render does.
 */
const uncheckedBytes = { least: 64 * 1024, most: 8 * 1024 * 1024 };

/** @param header IHDR */
export function readPixelCoding(reader: ByteReader, header: PngChunk): PixelCoding {
  return { bitDepth: reader.u8(header.start + 8), colourType: reader.u8(header.start + 9) };
}

/**
 * Says what is wrong with image data that cannot hold a picture, however well they are compressed.
 *
 * @param compressedBytes of all image data together
 */
export function findDataFault(
  { widthPx, heightPx }: Size,
  coding: PixelCoding,
  compressedBytes: number,
): string | undefined {
  // The filters' bytes left out, and an interlaced picture has as many bits in its passes.
  const leastBytes = heightPx * rowBytesOf(widthPx, coding);
  if (compressedBytes * maxExpansion >= leastBytes) return undefined;
  return `PNG: ${compressedBytes} bytes of image data cannot hold ${leastBytes} bytes of pixels`;
}

/**
 * Twice the rows of a picture, each with its filter's byte (PNG 3rd edition §7.2), and some more: interlaced
 * ones, of which there are nearly twice as many, fit in.
 */
export function mostImageBytes({ widthPx, heightPx }: Size, coding: PixelCoding): number {
  return 2 * heightPx * (1 + rowBytesOf(widthPx, coding)) + spareBytes;
}

/**
 * Looks through the image data of a still, as `checkImageData`; of an APNG, its default image.
 *
 * @param png its container has been walked through by `readPngHeader`, which tells of every other fault
 * @throws MediaError `UNPROCESSABLE_MEDIA`
 */
export async function checkStillData(png: Uint8Array): Promise<void> {
  const [header, ...chunks] = walkPngChunks(png);
  if (header === undefined) throw corruptMedia('PNG: no IHDR');
  const reader = new ByteReader(png, 'PNG');
  const size = { widthPx: reader.u32be(header.start), heightPx: reader.u32be(header.start + 4) };
  const coding = readPixelCoding(reader, header);
  const data = chunks.filter(({ type }) => type === 'IDAT');
  const pixelBytes = size.heightPx * rowBytesOf(size.widthPx, coding);
  const { least, most } = uncheckedBytes;
  const maxUncheckedBytes = Math.max(least, Math.min(most, pixelBytes));
  const bytes = data.reduce((sum, { start, end }) => sum + end - start, 0);
  if (bytes <= maxUncheckedBytes) return;
  const compressed = Buffer.concat(data.map(({ start, end }) => reader.slice(start, end)));
  await checkImageData(compressed, mostImageBytes(size, coding), maxUncheckedBytes);
}

/**
 * Throws where image data go on far behind the last row: libpng passes over the rest, but unpacks it to its end,
 * be that a thousand times the file. What else is wrong with them, the decoder says.
 *
 * @param maxUncheckedBytes compressed ones that may stay unseen at the end, since it costs little to unpack them
 * @throws MediaError `UNPROCESSABLE_MEDIA`
 */
export async function checkImageData(
  compressed: Uint8Array,
  mostBytes: number,
  maxUncheckedBytes = 0,
): Promise<void> {
  if (compressed.length <= maxUncheckedBytes) return;
  const inflate = createInflate({ chunkSize: Math.min(pieceBytes, mostBytes) });
  // A fault ends it, and is found by the decoder, too.
  inflate.on('error', () => undefined);
  const ended = new Promise((resolve) => inflate.once('close', resolve));
  let bytes = 0;
  inflate.on('data', (piece: Buffer) => {
    bytes += piece.length;
    const isCheap = compressed.length - inflate.bytesWritten <= maxUncheckedBytes;
    if (bytes > mostBytes || isCheap) inflate.destroy();
  });
  inflate.end(compressed);
  await ended;
  if (bytes > mostBytes) throw corruptMedia(`PNG: more than ${mostBytes} bytes of image data`);
}

function rowBytesOf(widthPx: number, { colourType, bitDepth }: PixelCoding): number {
  return Math.ceil((widthPx * bitDepth * (channels[colourType] ?? 0)) / 8);
}
