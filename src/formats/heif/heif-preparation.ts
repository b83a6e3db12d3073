import { hasAscii } from '../byte-reader.ts';
import { findBox, toFullBox } from './heif-boxes.ts';
import { findAlphaPlanes, findTiles } from './heif-derivation.ts';
import { type HeifFile, openHeif } from './heif-file.ts';
import { type Property, TRANSFORMS } from './heif-properties.ts';

/** Major brands that libvips recognises (`heif_magic` of its heifload). */
const KNOWN_BRANDS = [
  ...['avif', 'mif1', 'msf1', 'heic', 'heix', 'heim', 'heis', 'hevc', 'hevm', 'hevs'],
];

/** Flag of an item that is not shown by itself, such as a tile (ISO/IEC 23008-12 §6.4.2). */
const HIDDEN = 1;

/** Maximum properties of an item, counted by one byte. */
const MAX_PROPERTIES = 255;

/** Bit of an association: readers must know the property. */
const ESSENTIAL = 0x8000;

/**
 * Returns the file, or a copy, without EXIF and with a brand that libvips recognises. `Exif` items (ISO/IEC 14496-12
 * §8.11.6) become `free`, wherever their bytes occur, since libheif may reach an entry by another path.
 */
export function prepareHeif(heif: Uint8Array): Uint8Array {
  const bytes = Buffer.from(heif.buffer, heif.byteOffset, heif.byteLength);
  let plain: Buffer | undefined;
  for (let at = bytes.indexOf('infe'); at >= 0; at = bytes.indexOf('infe', at + 4)) {
    // The type follows version, flags, id (2 bytes in version 2, 4 in version 3) and protection index.
    for (const type of [at + 12, at + 14]) {
      if (!hasAscii(bytes, type, 'Exif')) continue;
      plain ??= Buffer.from(heif);
      plain.write('free', type, 'latin1');
    }
  }
  if (!KNOWN_BRANDS.some((brand) => hasAscii(bytes, 8, brand))) {
    plain ??= Buffer.from(heif);
    plain.write('avif', 8, 'latin1');
  }
  return withPrimaryTransforms(plain ?? heif);
}

/** Copies the file with another primary item, and unhides it, since libheif does not return hidden ones. */
export function withPrimaryItem(
  heif: Uint8Array,
  { meta, entries }: HeifFile,
  item: number,
): Uint8Array {
  const box = toFullBox(meta.reader, findBox(meta, 'pitm'));
  const copy = Buffer.from(heif);
  copy.writeUIntBE(item, box.start, box.version === 0 ? 2 : 4);
  for (const entry of entries) {
    if (entry.item === item)
      copy.writeUInt8(copy.readUInt8(entry.flagsAt) & ~HIDDEN, entry.flagsAt);
  }
  return copy;
}

/**
 * If necessary, gives the alpha plane the transforms of the primary image, and tiles none, as libavif reads a file:
 * libheif rotates each tile, and stretches an alpha plane without a rotation. avifenc 0.11 writes such files.
 */
function withPrimaryTransforms(bytes: Uint8Array): Uint8Array {
  const heif = openHeif(bytes);
  // An image that `iden` repeats keeps its own transforms.
  if (heif === undefined || heif.types.get(heif.primary) === 'iden') return bytes;
  const transforms = heif.propertiesOf(heif.primary).filter(isTransform);
  const alpha = new Set(findAlphaPlanes(heif, heif.primary));
  const isGrid = findTiles(heif, heif.primary).size > 0;
  const changed = [...heif.types.keys()].flatMap((item) => {
    if (item === heif.primary || !(isGrid || alpha.has(item))) return [];
    const own = heif.propertiesOf(item);
    const wanted = alpha.has(item) ? transforms : [];
    if (isEqual(own.filter(isTransform), wanted)) return [];
    const properties = [...wanted, ...own.filter((one) => !isTransform(one))];
    return [formatAssociation(item, properties.slice(0, MAX_PROPERTIES))];
  });
  return changed.length === 0 ? bytes : withAssociations(heif, changed);
}

function isTransform({ type }: Property): boolean {
  return TRANSFORMS.includes(type);
}

function isEqual(some: readonly Property[], others: readonly Property[]): boolean {
  return (
    some.length === others.length && some.every(({ index }, at) => index === others[at]?.index)
  );
}

/** Formats an `ipma` entry (ISO/IEC 23008-12 §9.3), with a 4-byte item id and 2-byte indices. */
function formatAssociation(item: number, properties: readonly Property[]): Buffer {
  const entry = Buffer.alloc(5 + 2 * properties.length);
  entry.writeUInt32BE(item);
  entry.writeUInt8(properties.length, 4);
  for (const [at, { index, isEssential }] of properties.entries()) {
    entry.writeUInt16BE(index + (isEssential ? ESSENTIAL : 0), 5 + 2 * at);
  }
  return entry;
}

/**
 * Copies a file and inserts associations before its own, since readers use an item's first. Offsets stay valid: the old
 * meta box and everything after it become a free box, followed by a longer meta box.
 */
function withAssociations({ meta }: HeifFile, entries: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(16);
  const ipma = Buffer.concat([head, ...entries]);
  ipma.writeUInt32BE(ipma.length);
  ipma.write('ipma', 4, 'latin1');
  ipma.writeUInt32BE(0x0100_0001, 8); // version 1; flags: indices of 2 bytes
  ipma.writeUInt32BE(entries.length, 12);

  const { bytes, length } = meta.reader;
  const { headerStart: start, end } = meta.box;
  const properties = findBox(meta, 'iprp');
  const copy = Buffer.concat([
    ...[bytes, bytes.subarray(start, properties.start)],
    ...[ipma, bytes.subarray(properties.start, end)],
  ]);
  copy.writeUInt32BE(length - start, start);
  copy.write('free', start + 4, 'latin1');
  for (const box of [meta.box, properties]) {
    lengthen(copy, length + box.headerStart - start, ipma.length);
  }
  return copy;
}

function lengthen(file: Buffer, box: number, moreBytes: number): void {
  const size = file.readUInt32BE(box);
  if (size === 1) file.writeUInt32BE(file.readUInt32BE(box + 12) + moreBytes, box + 12);
  else if (size > 0) file.writeUInt32BE(size + moreBytes, box);
}
