import { type ByteReader, corruptMedia } from '../byte-reader.ts';
import type { Size } from '../image-header.ts';
import type { PngChunk } from './png-chunks.ts';

/** Bit depths allowed for each colour type (PNG 3rd edition §11.2.1). */
const BIT_DEPTHS = new Map([
  [0, [1, 2, 4, 8, 16]],
  [2, [8, 16]],
  [3, [1, 2, 4, 8]],
  [4, [8, 16]],
  [6, [8, 16]],
]);
const MAX_SIDE_PX = 0x7fff_ffff;

/** Samples per pixel by colour type (PNG 3rd edition §11.2.1). */
const CHANNELS = [1, 0, 3, 1, 2, 0, 4];

/** Maximum bytes that one byte inflates to: 258 for each 2 bits (RFC 1951 §3.2.5). */
const MAX_EXPANSION = 1_032;

/** IHDR (PNG 3rd edition §11.2.1). */
export interface Ihdr extends Size {
  readonly colourType: number;
  readonly bitDepth: number;
}

/** @throws MediaError `UNPROCESSABLE_MEDIA` if the chunk is not IHDR, or its values are invalid */
export function readIhdr(reader: ByteReader, { type, start, end }: PngChunk): Ihdr {
  if (type !== 'IHDR' || end - start !== 13) {
    throw corruptMedia(`PNG: the first chunk is ${type} of ${end - start} bytes, not IHDR of 13`);
  }
  const widthPx = reader.u32be(start);
  const heightPx = reader.u32be(start + 4);
  const bitDepth = reader.u8(start + 8);
  const colourType = reader.u8(start + 9);
  const isKnownCoding =
    reader.u8(start + 10) === 0 && reader.u8(start + 11) === 0 && reader.u8(start + 12) <= 1;
  const isSize = [widthPx, heightPx].every((side) => side >= 1 && side <= MAX_SIDE_PX);
  const isKnownColour = BIT_DEPTHS.get(colourType)?.includes(bitDepth) ?? false;
  if (!isSize || !isKnownColour || !isKnownCoding) {
    throw corruptMedia(
      `PNG: IHDR of ${widthPx}x${heightPx} px, colour type ${colourType}, ${bitDepth} bit`,
    );
  }
  return { widthPx, heightPx, colourType, bitDepth };
}

/** Returns a reason if the image data would be too short even with the best compression. */
export function findDataError(header: Ihdr, compressedBytes: number): string | undefined {
  // Without filter bytes; interlaced passes have as many bits in total.
  const minBytes = header.heightPx * rowBytesOf(header);
  if (compressedBytes * MAX_EXPANSION >= minBytes) return undefined;
  return `PNG: ${compressedBytes} bytes of image data cannot hold ${minBytes} bytes of pixels`;
}

function rowBytesOf({ widthPx, colourType, bitDepth }: Ihdr): number {
  return Math.ceil((widthPx * bitDepth * (CHANNELS[colourType] ?? 0)) / 8);
}
