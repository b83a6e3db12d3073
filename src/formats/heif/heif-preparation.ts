import { hasAscii } from '../byte-reader.ts';
import { findBox, toFullBox } from './heif-boxes.ts';
import type { HeifFile } from './heif-file.ts';

/** Major brands by which libvips does not know its own (`heif_magic` of its heifload); `avif` it does. */
const UNKNOWN_BRANDS = ['avis', 'hevx'];

/**
 * The file without EXIF, and of a brand that libvips knows. Item information entries (ISO/IEC 14496-12 §8.11.6)
 * of the type `Exif` become `free`. The bytes are searched, not the boxes: libheif may find its way to an entry
 * by another path than ours.
 *
 * @returns the same bytes where there is nothing to change, or a copy as long
 */
export function prepareHeif(heif: Uint8Array): Uint8Array {
  const bytes = Buffer.from(heif.buffer, heif.byteOffset, heif.byteLength);
  let plain: Buffer | undefined;
  for (let at = bytes.indexOf('infe'); at >= 0; at = bytes.indexOf('infe', at + 4)) {
    // Behind version, flags, id (of 2 bytes in version 2, of 4 in version 3) and protection index.
    for (const type of [at + 12, at + 14]) {
      if (!hasAscii(bytes, type, 'Exif')) continue;
      plain ??= Buffer.from(heif);
      plain.write('free', type, 'latin1');
    }
  }
  if (UNKNOWN_BRANDS.some((brand) => hasAscii(bytes, 8, brand))) {
    plain ??= Buffer.from(heif);
    plain.write('avif', 8, 'latin1');
  }
  return plain ?? heif;
}

/** The file with another primary item: a copy as long. */
export function withPrimaryItem(heif: Uint8Array, { meta }: HeifFile, item: number): Uint8Array {
  const box = toFullBox(meta.reader, findBox(meta, 'pitm'));
  const copy = Buffer.from(heif);
  copy.writeUIntBE(item, box.start, box.version === 0 ? 2 : 4);
  return copy;
}
