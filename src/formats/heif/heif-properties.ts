import { type ByteReader, corruptMedia } from '../byte-reader.ts';
import type { Size } from '../image-facts.ts';
import {
  type Box,
  BoxCursor,
  findBox,
  type Meta,
  maxChildren,
  readBoxes,
  toFullBox,
} from './heif-boxes.ts';

/** Where the properties of an item are counted up in an `ipma`: one-based indices, from here on. */
interface Association {
  readonly cursor: BoxCursor;
  readonly count: number;
  readonly indexBytes: number;
}

/** Finds the property boxes of an item, in the order of association (`iprp`, ISO/IEC 23008-12 §9.3). */
export function indexProperties(meta: Meta): (item: number) => readonly Box[] {
  const { reader } = meta;
  const parts = readBoxes(reader, findBox(meta, 'iprp').start, findBox(meta, 'iprp').end);
  const container = parts.find((part) => part.type === 'ipco');
  const pool = container === undefined ? [] : readBoxes(reader, container.start, container.end);
  const associations = new Map<number, Association>();
  let entries = 0;
  for (const part of parts.filter(({ type }) => type === 'ipma')) {
    const box = toFullBox(reader, part);
    const cursor = new BoxCursor(reader, box);
    const indexBytes = (box.flags & 1) === 1 ? 2 : 1;
    const own = cursor.uint(4);
    entries += own;
    if (entries > maxChildren) throw corruptMedia(`HEIF: more than ${maxChildren} associations`);
    for (let left = own; left > 0; left -= 1) {
      const item = cursor.uint(box.version === 0 ? 2 : 4);
      const count = cursor.uint(1);
      // Of several, libheif too goes by the first.
      if (!associations.has(item)) {
        associations.set(item, { cursor: cursor.copy(), count, indexBytes });
      }
      cursor.skip(count * indexBytes);
    }
  }
  return (item) => {
    const association = associations.get(item);
    if (association === undefined) return [];
    const { count, indexBytes } = association;
    const cursor = association.cursor.copy();
    const mask = indexBytes === 2 ? 0x7fff : 0x7f;
    const indices = Array.from({ length: count }, () => cursor.uint(indexBytes) & mask);
    return indices.flatMap((index) => pool[index - 1] ?? []);
  };
}

/**
 * Size of an item as it is coded: `ispe`, wherever that stands; `undefined` where it has none.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where that is no size
 */
export function readCodedSize(reader: ByteReader, properties: readonly Box[]): Size | undefined {
  const extents = properties.find((property) => property.type === 'ispe');
  if (extents === undefined) return undefined;
  const cursor = new BoxCursor(reader, toFullBox(reader, extents));
  return checkSize({ widthPx: cursor.uint(4), heightPx: cursor.uint(4) });
}

/**
 * Size of an item as it is shown: as coded, with `clap` and `irot` applied in the order of association, as
 * libheif applies them.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where that is no size
 */
export function readShownSize(reader: ByteReader, properties: readonly Box[]): Size {
  const coded = readCodedSize(reader, properties);
  if (coded === undefined) throw corruptMedia('HEIF: the primary item has no size');
  let { widthPx, heightPx } = coded;
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
  return checkSize({ widthPx, heightPx });
}

/** A side of the clean aperture, a fraction, rounded to pixels (ISO/IEC 14496-12 §12.1.4). */
function readAperture(cursor: BoxCursor): number {
  const numerator = cursor.uint(4);
  return Math.floor(numerator / cursor.uint(4) + 0.5);
}

/** An aperture is a fraction, and a hostile one is a fraction of zero. */
function checkSize(size: Size): Size {
  const { widthPx, heightPx } = size;
  if (![widthPx, heightPx].every((side) => Number.isSafeInteger(side) && side > 0)) {
    throw corruptMedia(`HEIF: an image of ${widthPx}x${heightPx} px`);
  }
  return size;
}
