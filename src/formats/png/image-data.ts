import { createInflate } from 'node:zlib';
import { ByteReader, corruptMedia } from '../byte-reader.ts';
import type { Size } from '../image-facts.ts';
import { type PngChunk, walkPngChunks } from './png-chunks.ts';

/** Bit depths allowed for each colour type (PNG 3rd edition §11.2.1). */
const bitDepths = new Map([
  [0, [1, 2, 4, 8, 16]],
  [2, [8, 16]],
  [3, [1, 2, 4, 8]],
  [4, [8, 16]],
  [6, [8, 16]],
]);
/** PNG 3rd edition §7.1: the largest four-byte integer. */
const maxSidePx = 0x7fff_ffff;

/** Samples per pixel by colour type (PNG 3rd edition §11.2.1). */
const channels = [1, 0, 3, 1, 2, 0, 4];

/** Most bytes that deflate can make of one: 258 bytes of each 2 bits (RFC 1951 §3.2.5). */
const maxExpansion = 1_032;

/** Bytes that image data may have behind the last row, besides as many as before. */
const spareBytes = 64 * 1024;

/** Bytes of each piece in which image data are unpacked to be counted. */
const pieceBytes = 256 * 1024;

/**
 * Compressed bytes of a still that are not unpacked to be counted: as many as its pixels have bytes, which is more than
 * honest files have, within these bounds. The excess costs 10 ms at the lower bound and 1.3 s at the upper one (0.15 ns
 * a byte, of nothing but zeros); to unpack a large file costs a quarter of its render.
 */
const uncheckedBytes = { least: 64 * 1024, most: 8 * 1024 * 1024 };

/** Contents of IHDR (PNG 3rd edition §11.2.1). */
export interface ImageHeader extends Size {
  readonly colourType: number;
  readonly bitDepth: number;
}

/**
 * @param chunk the first one
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the chunk is not IHDR, or its values are invalid
 */
export function readImageHeader(reader: ByteReader, { type, start, end }: PngChunk): ImageHeader {
  if (type !== 'IHDR' || end - start !== 13) {
    throw corruptMedia(`PNG: the first chunk is ${type} of ${end - start} bytes, not IHDR of 13`);
  }
  const widthPx = reader.u32be(start);
  const heightPx = reader.u32be(start + 4);
  const bitDepth = reader.u8(start + 8);
  const colourType = reader.u8(start + 9);
  const isKnownCoding =
    reader.u8(start + 10) === 0 && reader.u8(start + 11) === 0 && reader.u8(start + 12) <= 1;
  const isSize = [widthPx, heightPx].every((side) => side >= 1 && side <= maxSidePx);
  const isKnownColour = bitDepths.get(colourType)?.includes(bitDepth) ?? false;
  if (!isSize || !isKnownColour || !isKnownCoding) {
    throw corruptMedia(
      `PNG: IHDR of ${widthPx}x${heightPx} px, colour type ${colourType}, ${bitDepth} bit`,
    );
  }
  return { widthPx, heightPx, colourType, bitDepth };
}

/** Returns the fault of image data that are too short for the image even with the best compression. */
export function findDataFault(header: ImageHeader, compressedBytes: number): string | undefined {
  // Without the filters' bytes; interlaced images have as many bits in their passes.
  const leastBytes = header.heightPx * rowBytesOf(header);
  if (compressedBytes * maxExpansion >= leastBytes) return undefined;
  return `PNG: ${compressedBytes} bytes of image data cannot hold ${leastBytes} bytes of pixels`;
}

/**
 * Returns twice the bytes of all rows, each with its filter byte (PNG 3rd edition §7.2), and some more: enough for
 * interlaced images, which have nearly twice as many rows.
 */
export function mostImageBytes(header: ImageHeader): number {
  return 2 * header.heightPx * (1 + rowBytesOf(header)) + spareBytes;
}

/**
 * Checks the image data of a still, or of an APNG's default image, with `checkImageData`.
 *
 * @param png walked through by `readPngHeader`, which reports every other fault
 * @throws MediaError `UNPROCESSABLE_MEDIA`
 */
export async function checkStillData(png: Uint8Array): Promise<void> {
  const [first, ...chunks] = walkPngChunks(png);
  if (first === undefined) throw corruptMedia('PNG: no IHDR');
  const reader = new ByteReader(png, 'PNG');
  const header = readImageHeader(reader, first);
  const data = chunks.filter(({ type }) => type === 'IDAT');
  const pixelBytes = header.heightPx * rowBytesOf(header);
  const { least, most } = uncheckedBytes;
  const maxUncheckedBytes = Math.max(least, Math.min(most, pixelBytes));
  const bytes = data.reduce((sum, { start, end }) => sum + end - start, 0);
  if (bytes <= maxUncheckedBytes) return;
  const compressed = Buffer.concat(data.map(({ start, end }) => reader.slice(start, end)));
  await checkImageData(compressed, mostImageBytes(header), maxUncheckedBytes);
}

/**
 * Rejects image data that continue far behind the last row: libpng ignores the rest, but unpacks it to its end, perhaps
 * a thousand times the file. The decoder reports all other faults.
 *
 * @param maxUncheckedBytes compressed bytes at the end that need no check, since unpacking them costs little
 * @throws MediaError `UNPROCESSABLE_MEDIA`
 */
export async function checkImageData(
  compressed: Uint8Array,
  mostBytes: number,
  maxUncheckedBytes = 0,
): Promise<void> {
  const inflate = createInflate({ chunkSize: Math.min(pieceBytes, mostBytes) });
  // A fault ends the stream; the decoder will report it.
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

function rowBytesOf({ widthPx, colourType, bitDepth }: ImageHeader): number {
  return Math.ceil((widthPx * bitDepth * (channels[colourType] ?? 0)) / 8);
}
