import { hasAscii } from '../byte-reader.ts';
import { findBox, toFullBox } from './heif-boxes.ts';
import { type HeifFile, readItemEntries } from './heif-file.ts';
import { withTransformsOfPicture } from './heif-transforms.ts';

/** Major brands that libvips does not recognise (`heif_magic` of its heifload), unlike `avif`. */
const UNKNOWN_BRANDS = ['avis', 'hevx'];

/** Flag of an item that is not shown by itself (ISO/IEC 23008-12 §6.4.2); tiles usually have the flag. */
const HIDDEN = 1;

/**
 * Returns the file without EXIF, and with a brand that libvips recognises. Item information entries (ISO/IEC 14496-12
 * §8.11.6) of the type `Exif` become `free`. The search covers bytes, not boxes: libheif may find an entry by another
 * path than ours.
 *
 * @returns the same bytes if there is nothing to change, else a copy of the same length
 */
export function prepareHeif(heif: Uint8Array): Uint8Array {
  const bytes = Buffer.from(heif.buffer, heif.byteOffset, heif.byteLength);
  let plain: Buffer | undefined;
  for (let at = bytes.indexOf('infe'); at >= 0; at = bytes.indexOf('infe', at + 4)) {
    // The type stands behind version, flags, id (2 bytes in version 2, 4 in version 3) and protection index.
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
  return withTransformsOfPicture(plain ?? heif);
}

/** Copies the file with another primary item, which is unhidden: libheif does not return hidden items. */
export function withPrimaryItem(heif: Uint8Array, { meta }: HeifFile, item: number): Uint8Array {
  const box = toFullBox(meta.reader, findBox(meta, 'pitm'));
  const copy = Buffer.from(heif);
  copy.writeUIntBE(item, box.start, box.version === 0 ? 2 : 4);
  for (const entry of readItemEntries(meta)) {
    if (entry.item === item)
      copy.writeUInt8(copy.readUInt8(entry.flagsAt) & ~HIDDEN, entry.flagsAt);
  }
  return copy;
}
