import { hasAscii } from './byte-reader.ts';
import type { Orientation } from './image-facts.ts';

const exifPrefix = 'Exif\0\0';
const orientationTag = 0x0112;
/** libvips refuses to parse a longer block (`vips_exif_load_data_without_fix`). */
const maxBlockBytes = 1 << 20;

/** libvips turns an entry of more values into prose. */
const maxValues = 9;

/** Bytes of a value of each TIFF field type; libexif 0.6.26 drops an entry of another type. */
const valueBytes = new Map([
  [1, 1],
  [2, 1],
  [3, 2],
  [4, 4],
  [5, 8],
  [6, 1],
  [7, 1],
  [8, 2],
  [9, 4],
  [10, 8],
  [11, 4],
  [12, 8],
]);

/**
 * Reads the orientation of the main image (IFD 0, tag 0x0112) from an EXIF block.
 *
 * `block` is a TIFF structure, with or without the prefix `Exif\0\0` (APP1 has it; PNG eXIf and
 * mostly WebP have not). 1 where the block is broken, holds no orientation or one out of 1 to 8:
 * metadata never makes an image unreadable. Rules: TIFF 6.0 §2, Exif 2.32 §4.6.4 A, and libvips.
 */
export function readExifOrientation(block: Uint8Array): Orientation {
  const tiff = hasAscii(block, 0, exifPrefix) ? block.subarray(exifPrefix.length) : block;
  if (tiff.length < 8 || block.length > maxBlockBytes) {
    return 1;
  }
  const isLittleEndian = hasAscii(tiff, 0, 'II');
  if (!isLittleEndian && !hasAscii(tiff, 0, 'MM')) {
    return 1;
  }
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const directory = view.getUint32(4, isLittleEndian);
  if (view.getUint16(2, isLittleEndian) !== 42 || directory + 2 > tiff.length) {
    return 1;
  }
  // A directory that runs past the end of the block is read as far as it goes, like libexif does.
  const fit = Math.floor((tiff.length - directory - 2) / 12);
  const entries = Math.min(view.getUint16(directory, isLittleEndian), fit);
  for (let index = 0; index < entries; index += 1) {
    const entry = directory + 2 + index * 12;
    if (view.getUint16(entry, isLittleEndian) === orientationTag) {
      const value = readFirstValue(view, entry, isLittleEndian);
      if (value !== undefined) {
        return toOrientation(value);
      }
    }
  }
  return 1;
}

/**
 * The first value of a directory entry, of a fraction its numerator; 0 where it is text or a
 * float (not followed into the oddity that libvips finds a number in these too), and undefined
 * where libexif drops the entry, so that a later one counts.
 */
function readFirstValue(
  view: DataView,
  entry: number,
  isLittleEndian: boolean,
): number | undefined {
  const type = view.getUint16(entry + 2, isLittleEndian);
  const count = view.getUint32(entry + 4, isLittleEndian);
  const size = count * (valueBytes.get(type) ?? 0);
  const at = size > 4 ? view.getUint32(entry + 8, isLittleEndian) : entry + 8;
  if (size === 0 || at + size > view.byteLength) {
    return undefined;
  }
  if (count > maxValues) {
    return 0;
  }
  switch (type) {
    case 1:
    case 6:
      return view.getUint8(at);
    case 3:
    case 8:
      return view.getUint16(at, isLittleEndian);
    case 4:
    case 9:
      // libexif makes a SHORT of it.
      return view.getUint32(at, isLittleEndian) & 0xffff;
    case 5:
    case 10:
      return view.getUint32(at, isLittleEndian);
    default:
      return 0;
  }
}

function toOrientation(value: number): Orientation {
  switch (value) {
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
      return value;
    default:
      return 1;
  }
}
