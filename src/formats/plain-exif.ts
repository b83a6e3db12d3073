import { crc32 } from 'node:zlib';
import { hasAscii } from './byte-reader.ts';
import { isAvifLike } from './heif/avif-header.ts';
import type { Orientation } from './image-facts.ts';
import { isJpeg } from './jpeg/jpeg-header.ts';
import { isPng } from './png/png-header.ts';
import { isWebp } from './webp/webp-header.ts';

/** A stretch of bytes that holds a TIFF structure, perhaps with the prefix `Exif\0\0`. */
interface ExifBlock {
  readonly start: number;
  readonly end: number;
}

const exifPrefix = 'Exif\0\0';
const sos = 0xda;

/** A directory of one entry, the orientation, as a short (TIFF 6.0 §2); its value goes to byte 18. */
const plainTiff = Buffer.from('49492a0008000000010012010300010000000000000000000000', 'hex');
const valueAt = 18;
/** What comes after may be missing: the offset of a next directory. */
const leastBytes = 22;

/**
 * Makes an EXIF block say the orientation and nothing else, before a decoder sees it. libvips has
 * libexif parse whatever it finds, and libexif 0.6.26 follows directories that lead to each other:
 * 500 bytes keep it busy for half a minute.
 *
 * @param orientation as `readExifOrientation` gives it; of 1 nothing is said at all
 * @returns the same bytes where there is no EXIF in a place that libvips looks at, or a copy as long
 */
export function withPlainExif(original: Uint8Array, orientation: Orientation): Uint8Array {
  if (isAvifLike(original)) return withoutExifItems(original);
  const blocks = findBlocks(original);
  if (blocks.length === 0) return original;
  const plain = Buffer.from(original);
  for (const { start, end } of blocks) {
    const tiff = hasAscii(original, start, exifPrefix) ? start + exifPrefix.length : start;
    plain.fill(0, tiff, end);
    if (orientation !== 1 && end - tiff >= leastBytes) {
      plainTiff.copy(plain, tiff, 0, end - tiff);
      plain[tiff + valueAt] = orientation;
    }
    if (isPng(original)) plain.writeUInt32BE(crc32(plain.subarray(start - 4, end)), end);
  }
  return plain;
}

function findBlocks(bytes: Uint8Array): ExifBlock[] {
  if (isJpeg(bytes)) return findJpegBlocks(bytes);
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isPng(bytes)) return findPngBlocks(view);
  return isWebp(bytes) ? findWebpBlocks(view) : [];
}

/** APP1 segments before the first scan; junk and fill bytes are skipped, as libjpeg does. */
function findJpegBlocks(jpeg: Uint8Array): ExifBlock[] {
  const blocks: ExifBlock[] = [];
  for (let at = jpeg.indexOf(0xff, 2); at >= 0; ) {
    const code = jpeg[at + 1];
    const length = (jpeg[at + 2] ?? 0) * 256 + (jpeg[at + 3] ?? 0);
    if (code === undefined || code === sos) break;
    const hasSegment = code >= 0xc0 && code !== 0xff && (code < 0xd0 || code > 0xd9);
    const end = hasSegment ? at + 2 + Math.max(2, length) : at + (code === 0xff ? 1 : 2);
    if (code === 0xe1 && hasAscii(jpeg, at + 4, 'Exif')) {
      blocks.push({ start: at + 4, end: Math.min(end, jpeg.length) });
    }
    at = jpeg.indexOf(0xff, end);
  }
  return blocks;
}

function findPngBlocks(png: Buffer): ExifBlock[] {
  const blocks: ExifBlock[] = [];
  for (let at = 8; at + 12 <= png.length; ) {
    const end = at + 8 + png.readUInt32BE(at);
    if (hasAscii(png, at + 4, 'eXIf') && end + 4 <= png.length) blocks.push({ start: at + 8, end });
    at = end + 4;
  }
  return blocks;
}

function findWebpBlocks(webp: Buffer): ExifBlock[] {
  const blocks: ExifBlock[] = [];
  for (let at = 12; at + 8 <= webp.length; ) {
    const end = at + 8 + webp.readUInt32LE(at + 4);
    if (hasAscii(webp, at, 'EXIF')) blocks.push({ start: at + 8, end: Math.min(end, webp.length) });
    at = end + (end % 2);
  }
  return blocks;
}

/**
 * Item information entries (ISO/IEC 14496-12 §8.11.6) of the type `Exif` become `free`. The bytes are
 * searched, not the boxes: libheif may find its way to an entry by another path than ours.
 */
function withoutExifItems(avif: Uint8Array): Uint8Array {
  const bytes = Buffer.from(avif.buffer, avif.byteOffset, avif.byteLength);
  let plain: Buffer | undefined;
  for (let at = bytes.indexOf('infe'); at >= 0; at = bytes.indexOf('infe', at + 4)) {
    // Behind version, flags, id (of 2 bytes in version 2, of 4 in version 3) and protection index.
    for (const type of [at + 12, at + 14]) {
      if (!hasAscii(bytes, type, 'Exif')) continue;
      plain ??= Buffer.from(avif);
      plain.write('free', type, 'latin1');
    }
  }
  return plain ?? avif;
}
