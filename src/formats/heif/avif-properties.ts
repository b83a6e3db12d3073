import { type ByteReader, corruptMedia } from '../byte-reader.ts';
import {
  type Box,
  BoxCursor,
  findBox,
  type Meta,
  maxChildren,
  readBoxes,
  toFullBox,
} from './heif-boxes.ts';

/**
 * Size of an item from `ispe`, wherever that stands, with `clap` and `irot` applied in the order
 * of association, as libheif applies them.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where that is no size
 */
export function readItemSize(meta: Meta, item: number): { widthPx: number; heightPx: number } {
  const { reader } = meta;
  const properties = readProperties(meta, item);
  const extents = properties.find((property) => property.type === 'ispe');
  if (extents === undefined) {
    throw corruptMedia(`AVIF: item ${item} has no size`);
  }
  const cursor = new BoxCursor(reader, toFullBox(reader, extents));
  let widthPx = cursor.uint(4);
  let heightPx = cursor.uint(4);
  for (const property of properties) {
    if (property.type === 'clap') {
      const aperture = new BoxCursor(reader, property);
      widthPx = readAperture(aperture);
      heightPx = readAperture(aperture);
    } else if (property.type === 'irot') {
      const quarterTurns = new BoxCursor(reader, property).uint(1) & 3;
      if (quarterTurns % 2 === 1) {
        [widthPx, heightPx] = [heightPx, widthPx];
      }
    }
  }
  // An aperture is a fraction, and a hostile one is a fraction of zero.
  if (![widthPx, heightPx].every((side) => Number.isSafeInteger(side) && side > 0)) {
    throw corruptMedia(`AVIF: item ${item} has a size of ${widthPx}x${heightPx} px`);
  }
  return { widthPx, heightPx };
}

/** A side of the clean aperture, a fraction, rounded to pixels (ISO/IEC 14496-12 §12.1.4). */
function readAperture(cursor: BoxCursor): number {
  const numerator = cursor.uint(4);
  return Math.floor(numerator / cursor.uint(4) + 0.5);
}

/** The property boxes associated with an item (`iprp`, ISO/IEC 23008-12 §9.3). */
function readProperties(meta: Meta, item: number): Box[] {
  const { reader } = meta;
  const parts = readBoxes(reader, findBox(meta, 'iprp').start, findBox(meta, 'iprp').end);
  const container = parts.find((part) => part.type === 'ipco');
  const pool = container === undefined ? [] : readBoxes(reader, container.start, container.end);
  let entries = 0;
  for (const part of parts.filter(({ type }) => type === 'ipma')) {
    entries += countAssociations(reader, part);
    if (entries > maxChildren) throw corruptMedia(`AVIF: more than ${maxChildren} associations`);
    const indices = readAssociations(reader, part, item);
    if (indices !== undefined) {
      return indices.flatMap((index) => pool[index - 1] ?? []);
    }
  }
  return [];
}

/** Entries of an `ipma`, one per item. */
function countAssociations(reader: ByteReader, part: Box): number {
  return new BoxCursor(reader, toFullBox(reader, part)).uint(4);
}

/** One-based indices of an item's properties; undefined where this `ipma` does not name it. */
function readAssociations(reader: ByteReader, part: Box, item: number): number[] | undefined {
  const box = toFullBox(reader, part);
  const cursor = new BoxCursor(reader, box);
  const indexBytes = (box.flags & 1) === 1 ? 2 : 1;
  const indexMask = indexBytes === 2 ? 0x7fff : 0x7f;
  for (let entries = cursor.uint(4); entries > 0; entries -= 1) {
    const id = cursor.uint(box.version === 0 ? 2 : 4);
    const indices: number[] = [];
    for (let count = cursor.uint(1); count > 0; count -= 1) {
      indices.push(cursor.uint(indexBytes) & indexMask);
    }
    if (id === item) {
      return indices;
    }
  }
  return undefined;
}
