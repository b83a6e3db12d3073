import { hasAscii } from '../byte-reader.ts';

/** Tag of the entries of an MP index (CIPA DC-007 §5.2.3). */
const ENTRIES_TAG = 0xb002;

/** Bytes of a TIFF directory entry, and of an entry of the index, whose third word is the offset. */
const TIFF_ENTRY_BYTES = 12;
const PICTURE_BYTES = 16;
const OFFSET_AT = 8;

/**
 * Returns the file offsets of the pictures after the first (CIPA DC-007), ascending; empty if the index is damaged.
 *
 * @param base offset of `tiff` in the file
 */
export function readPictureOffsets(tiff: Uint8Array, base: number): readonly number[] {
  const isLittleEndian = hasAscii(tiff, 0, 'II');
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const u16 = (at: number): number =>
    at + 2 <= tiff.length ? view.getUint16(at, isLittleEndian) : 0;
  const u32 = (at: number): number =>
    at + 4 <= tiff.length ? view.getUint32(at, isLittleEndian) : 0;
  const directory = u32(4);
  const count = u16(directory);
  for (let index = 0; index < count; index += 1) {
    const entry = directory + 2 + index * TIFF_ENTRY_BYTES;
    if (entry >= tiff.length) break;
    if (u16(entry) !== ENTRIES_TAG) continue;
    const first = u32(entry + 8);
    const fit = Math.max(0, Math.min(tiff.length - first, u32(entry + 4)));
    return Array.from({ length: Math.floor(fit / PICTURE_BYTES) }, (_, picture) =>
      u32(first + picture * PICTURE_BYTES + OFFSET_AT),
    )
      .filter((offset) => offset > 0)
      .map((offset) => base + offset)
      .sort((one, other) => one - other);
  }
  return [];
}
