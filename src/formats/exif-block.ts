import { type Extent, hasAscii } from './byte-reader.ts';
import type { Orientation } from './image-header.ts';

const EXIF_PREFIX = 'Exif\0\0';
const ORIENTATION_TAG = 0x0112;
/** Maximum length that libvips parses (`vips_exif_load_data_without_fix`). */
const MAX_BLOCK_BYTES = 1 << 20;

const ORIENTATIONS = [1, 2, 3, 4, 5, 6, 7, 8] as const satisfies readonly Orientation[];

const SHORT = 3;

/**
 * Reads the orientation (IFD 0, tag 0x0112) of a TIFF structure, with or without a prefix. Returns 1 unless it is a
 * single SHORT from 1 to 8: invalid metadata never makes an image unreadable (TIFF 6.0 §2, Exif 2.32 §4.6.4 A).
 */
export function readExifOrientation(block: Uint8Array): Orientation {
  return findExifOrientation(block) ?? 1;
}

/** Like `readExifOrientation`; returns `undefined` if there is no valid orientation. */
export function findExifOrientation(block: Uint8Array): Orientation | undefined {
  const tiff = hasAscii(block, 0, EXIF_PREFIX) ? block.subarray(EXIF_PREFIX.length) : block;
  if (tiff.length < 8 || block.length > MAX_BLOCK_BYTES) return undefined;
  const isLittleEndian = hasAscii(tiff, 0, 'II');
  if (!isLittleEndian && !hasAscii(tiff, 0, 'MM')) return undefined;
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const directory = view.getUint32(4, isLittleEndian);
  if (view.getUint16(2, isLittleEndian) !== 42 || directory + 2 > tiff.length) return undefined;
  // Like libexif, reads a directory that exceeds the block up to the end of the block.
  const fit = Math.floor((tiff.length - directory - 2) / 12);
  const entries = Math.min(view.getUint16(directory, isLittleEndian), fit);
  for (let index = 0; index < entries; index += 1) {
    const entry = directory + 2 + index * 12;
    if (view.getUint16(entry, isLittleEndian) !== ORIENTATION_TAG) continue;
    const isShort = view.getUint16(entry + 2, isLittleEndian) === SHORT;
    const isSingle = view.getUint32(entry + 4, isLittleEndian) === 1;
    const value = isShort && isSingle ? view.getUint16(entry + 8, isLittleEndian) : 0;
    return ORIENTATIONS.find((orientation) => orientation === value);
  }
  return undefined;
}

/** Directory with the orientation as its only entry, a SHORT (TIFF 6.0 §2) at byte 18. */
const PLAIN_TIFF = Buffer.from('49492a0008000000010012010300010000000000000000000000', 'hex');
const VALUE_AT = 18;
/** Length without the offset of a next directory. */
const MIN_BYTES = 22;

/**
 * Reduces EXIF blocks to the orientation: libvips passes any block to libexif 0.6.26, which 500 bytes of directories
 * that refer to each other occupy for half a minute.
 *
 * @param blocks all that libvips reads: TIFF structures, perhaps with the prefix `Exif\0\0`
 * @param orientation 1 is written as an empty block
 * @returns the same bytes if there are no blocks, else a copy of the same length
 */
export function withPlainExif(
  original: Uint8Array,
  blocks: readonly Extent[],
  orientation: Orientation,
): Uint8Array {
  if (blocks.length === 0) return original;
  const plain = Buffer.from(original);
  for (const { start, end } of blocks) {
    const tiff = hasAscii(original, start, EXIF_PREFIX) ? start + EXIF_PREFIX.length : start;
    plain.fill(0, tiff, end);
    if (orientation !== 1 && end - tiff >= MIN_BYTES) {
      formatPlainTiff(orientation).copy(plain, tiff, 0, end - tiff);
    }
  }
  return plain;
}

/** Returns 26 bytes of TIFF with only the orientation; the last four may be cut off. */
export function formatPlainTiff(orientation: Orientation): Buffer {
  const tiff = Buffer.from(PLAIN_TIFF);
  tiff[VALUE_AT] = orientation;
  return tiff;
}
