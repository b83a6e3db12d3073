import { hasAscii } from '../byte-reader.ts';
import { findExifOrientation, formatPlainTiff } from '../exif-block.ts';
import type { Orientation } from '../image-header.ts';
import { MetadataRemovalError } from './stream-editor.ts';

/** Prefix of the TIFF structure in a JPEG; some encoders also write it in other formats. */
export const EXIF_PREFIX = 'Exif\0\0';
const ENTRY_BYTES = 12;

/** Bytes of a TIFF structure with one entry, without the offset of a next directory. */
const MIN_TIFF_BYTES = 22;

/**
 * Returns a TIFF structure with only the orientation of an EXIF block; the caller writes it to the start of the block,
 * and zeros the rest. Returns `undefined` without an orientation and a `fallback`, or if the block is too short.
 *
 * @param head the block, or the first bytes of a long one
 * @param blockBytes length of the complete block
 * @throws MetadataRemovalError if the orientation may be after the head
 */
export function reduceExif(
  head: Uint8Array,
  blockBytes: number,
  fallback?: Orientation,
): Uint8Array | undefined {
  const prefixBytes = hasAscii(head, 0, EXIF_PREFIX) ? EXIF_PREFIX.length : 0;
  if (blockBytes > head.length && !containsDirectory(head.subarray(prefixBytes))) {
    throw new MetadataRemovalError('The EXIF block is too long.');
  }
  const orientation = findExifOrientation(head) ?? fallback;
  if (orientation === undefined || blockBytes < MIN_TIFF_BYTES) return undefined;
  return formatPlainTiff(orientation).subarray(0, blockBytes);
}

/** Whether the first bytes of a TIFF structure contain its complete first directory. */
function containsDirectory(tiff: Uint8Array): boolean {
  const isLittleEndian = tiff[0] === 0x49;
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const directory = view.getUint32(4, isLittleEndian);
  if (directory + 2 > tiff.length) return false;
  return directory + 2 + ENTRY_BYTES * view.getUint16(directory, isLittleEndian) <= tiff.length;
}
