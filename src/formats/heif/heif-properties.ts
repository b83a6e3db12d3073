import { type ByteReader, corruptMedia } from '../byte-reader.ts';
import type { Size } from '../image-header.ts';
import type { Box } from '../iso-boxes.ts';
import { BoxCursor, findBox, MAX_CHILDREN, type Meta, readBoxes, toFullBox } from './heif-boxes.ts';

/** Properties of an item in an `ipma`: one-based indices from the cursor on. */
interface Association {
  readonly cursor: BoxCursor;
  readonly count: number;
  readonly indexBytes: number;
}

export interface Property extends Box {
  /** One-based index of the property in the file. */
  readonly index: number;
  /** Whether readers must not show the item if they do not know the property. */
  readonly isEssential: boolean;
}

/** Indexes the properties of items in order of association (`iprp`, ISO/IEC 23008-12 §9.3). */
export function indexProperties(meta: Meta): (item: number) => readonly Property[] {
  const { reader } = meta;
  const { start, end } = findBox(meta, 'iprp');
  const parts = [...readBoxes(reader, start, end)];
  const container = parts.find((part) => part.type === 'ipco');
  const pool =
    container === undefined ? [] : [...readBoxes(reader, container.start, container.end)];
  const variants = [false, true].map((isEssential) =>
    pool.map((box, at): Property => ({ ...box, index: at + 1, isEssential })),
  );
  const associations = new Map<number, Association>();
  let entries = 0;
  for (const part of parts.filter(({ type }) => type === 'ipma')) {
    const box = toFullBox(reader, part);
    const cursor = new BoxCursor(reader, box);
    const indexBytes = (box.flags & 1) === 1 ? 2 : 1;
    const own = cursor.uint(4);
    entries += own;
    if (entries > MAX_CHILDREN) throw corruptMedia(`HEIF: more than ${MAX_CHILDREN} associations`);
    for (let left = own; left > 0; left -= 1) {
      const item = cursor.uint(box.version === 0 ? 2 : 4);
      const count = cursor.uint(1);
      // As in libheif, the first entry counts.
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
    const essential = indexBytes === 2 ? 0x8000 : 0x80;
    const properties: Property[] = [];
    for (let left = count; left > 0; left -= 1) {
      const field = cursor.uint(indexBytes);
      const property = variants[field >= essential ? 1 : 0]?.[(field & (essential - 1)) - 1];
      if (property !== undefined) properties.push(property);
    }
    return properties;
  };
}

/** Returns the size of an item from `ispe`. @throws MediaError `UNPROCESSABLE_MEDIA` for an invalid one */
export function readCodedSize(reader: ByteReader, properties: readonly Box[]): Size | undefined {
  const extents = properties.find((property) => property.type === 'ispe');
  if (extents === undefined) return undefined;
  const cursor = new BoxCursor(reader, toFullBox(reader, extents));
  return checkSize({ widthPx: cursor.uint(4), heightPx: cursor.uint(4) });
}

export const TRANSFORMS: readonly string[] = ['clap', 'irot', 'imir'];

/** A transform of the shown image (ISO/IEC 23008-12 §6.5.10, §6.5.12; ISO/IEC 14496-12 §12.1.4). */
export type Transform =
  | {
      readonly kind: 'crop';
      readonly size: Size;
      /** Offset of the crop's centre from the image's, in pixels. */
      readonly offset: readonly [xPx: number, yPx: number];
    }
  | { readonly kind: 'rotation'; readonly quarterTurnsLeft: number }
  | { readonly kind: 'mirror'; readonly swaps: 'top and bottom' | 'left and right' };

/** Returns the transforms of an item in order of association, in which libheif applies them. */
export function readTransforms(reader: ByteReader, properties: readonly Box[]): Transform[] {
  return properties.flatMap((property): Transform[] => {
    const cursor = new BoxCursor(reader, property);
    switch (property.type) {
      case 'clap': {
        const size = { widthPx: readSide(cursor), heightPx: readSide(cursor) };
        return [{ kind: 'crop', size, offset: [readOffset(cursor), readOffset(cursor)] }];
      }
      case 'irot':
        return [{ kind: 'rotation', quarterTurnsLeft: cursor.uint(1) & 3 }];
      case 'imir': {
        const swaps = (cursor.uint(1) & 1) === 0 ? 'top and bottom' : 'left and right';
        return [{ kind: 'mirror', swaps }];
      }
      default:
        return [];
    }
  });
}

/** Returns the size of an item after its transforms. @throws MediaError `UNPROCESSABLE_MEDIA` for an invalid one */
export function readShownSize(reader: ByteReader, properties: readonly Box[]): Size {
  let size = readCodedSize(reader, properties);
  if (size === undefined) throw corruptMedia('HEIF: the primary item has no size');
  for (const transform of readTransforms(reader, properties)) {
    if (transform.kind === 'crop') size = transform.size;
    const turns = transform.kind === 'rotation' ? transform.quarterTurnsLeft : 0;
    if (turns % 2 === 1) size = { widthPx: size.heightPx, heightPx: size.widthPx };
  }
  return checkSize(size);
}

/** Reads a side of the clean aperture, rounded to pixels. */
function readSide(cursor: BoxCursor): number {
  const numerator = cursor.uint(4);
  return Math.floor(numerator / cursor.uint(4) + 0.5);
}

function readOffset(cursor: BoxCursor): number {
  const numerator = cursor.uint(4) | 0;
  return numerator / cursor.uint(4);
}

/** Throws for an invalid size, for example of an aperture with a denominator of zero. */
function checkSize(size: Size): Size {
  const { widthPx, heightPx } = size;
  if (![widthPx, heightPx].every((side) => Number.isSafeInteger(side) && side > 0)) {
    throw corruptMedia(`HEIF: an image of ${widthPx}x${heightPx} px`);
  }
  return size;
}
