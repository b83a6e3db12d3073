import { ByteReader, corruptMedia, type Extent } from '../byte-reader.ts';
import type { Size } from '../image-header.ts';
import { type Box, iterateBoxes } from '../iso-boxes.ts';
import { BoxCursor, findBox, MAX_CHILDREN, type Meta, readBoxes, toFullBox } from './heif-boxes.ts';
import { indexProperties, type Property, readCodedSize } from './heif-properties.ts';

/** Maximum extents of all items, far beyond libheif's 32 per item. */
const MAX_EXTENTS = 100_000;

/** Maximum references: more than the 65 536 tiles of the largest grid. */
const MAX_REFERENCES = 100_000;

/** Maximum reads, to limit the product of all counts: the smallest tiles of 100 megapixels with alpha need 160 000. */
const MAX_READS = 200_000;

/** Items of a file of ISO boxes (ISO/IEC 14496-12 §8.11; ISO/IEC 23008-12). */
export interface HeifFile {
  readonly meta: Meta;
  readonly primary: number;
  readonly entries: readonly ItemEntry[];
  /** Four-character types by item id. */
  readonly types: ReadonlyMap<number, string>;
  /** Extents of items by id, without those in other files. */
  readonly locations: ReadonlyMap<number, readonly Extent[]>;
  readonly bytesOf: (item: number) => number;
  /** Returns the properties of an item in order of association. */
  readonly propertiesOf: (item: number) => readonly Property[];
  /** Returns the size of an item before its transforms. */
  readonly codedSizeOf: (item: number) => Size | undefined;
  /** Returns the items from which an item is derived. */
  readonly sourcesOf: (item: number) => readonly number[];
  /** Returns the items that refer to an item, for example its alpha plane by `auxl`. */
  readonly referrersOf: (item: number, type: string) => readonly number[];
}

/**
 * Opens a file that begins with a file type box; `undefined` if it contains only tracks. @throws MediaError
 *
 * @param sizeBytes size of the file, if `bytes` is only a prefix
 */
export function openHeif(bytes: Uint8Array, sizeBytes = bytes.length): HeifFile | undefined {
  const reader = new ByteReader(bytes, 'HEIF', MAX_READS);
  const box = findMeta(reader, sizeBytes);
  if (box === undefined) return undefined;
  const { start, end } = toFullBox(reader, box);
  const boxes = new Map<string, Box>();
  for (const child of readBoxes(reader, start, end)) {
    if (!boxes.has(child.type)) boxes.set(child.type, child);
  }
  const meta: Meta = { reader, box, boxes };
  const item = toFullBox(reader, findBox(meta, 'pitm'));
  const primary = new BoxCursor(reader, item).uint(item.version === 0 ? 2 : 4);
  const properties = lazily(() => indexProperties(meta));
  const references = lazily(() => readReferences(meta));
  const sources = lazily(() => {
    const derivations = references().filter(({ type }) => type === 'dimg');
    // The first entry of an item counts.
    return new Map(derivations.reverse().map(({ from, to }) => [from, to]));
  });
  const entries = readItemEntries(meta);
  const locations = readLocations(meta, sizeBytes);
  const propertiesOf = perItem((item) => properties()(item));
  return {
    meta,
    primary,
    entries,
    types: new Map(entries.map(({ item, type }) => [item, type])),
    locations,
    bytesOf: perItem((item) =>
      (locations.get(item) ?? []).reduce((sum, { start, end }) => sum + end - start, 0),
    ),
    propertiesOf,
    codedSizeOf: perItem((item) => readCodedSize(reader, propertiesOf(item))),
    sourcesOf: (item) => sources().get(item) ?? [],
    referrersOf: (item, wanted) => {
      const referrers = references().filter(({ type, to }) => type === wanted && to.includes(item));
      return [...new Set(referrers.map(({ from }) => from))];
    },
  };
}

export function readItem({ meta, locations }: HeifFile, item: number, maxBytes: number): Buffer {
  const parts = locations.get(item) ?? [];
  const bytes = parts.map(({ start, end }) => meta.reader.slice(start, end));
  const length = bytes.reduce((sum, part) => sum + part.length, 0);
  if (length > maxBytes) throw corruptMedia(`HEIF: item ${item} has ${length} bytes`);
  return Buffer.concat(bytes);
}

/** Caches a value per item: a file may refer to one item 65 000 times. */
function perItem<Value>(compute: (item: number) => Value): (item: number) => Value {
  const getters = new Map<number, () => Value>();
  return (item) => {
    const known = getters.get(item);
    if (known !== undefined) return known();
    const value = compute(item);
    getters.set(item, () => value);
    return value;
  };
}

function lazily<Value>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}

/** Finds the meta box; `undefined` for an image sequence, whose movie box has none. */
function findMeta(reader: ByteReader, sizeBytes: number): Box | undefined {
  let hasMovie = false;
  for (const box of readBoxes(reader, 0, sizeBytes)) {
    if (box.type === 'meta') {
      rejectSecondMeta(reader, box.end);
      return box;
    }
    hasMovie ||= box.type === 'moov';
  }
  if (hasMovie) return undefined;
  throw corruptMedia('HEIF: no meta box');
}

/** Throws for a second meta box, which libheif would use. Like libheif, stops at bytes that are not a box. */
function rejectSecondMeta(reader: ByteReader, start: number): void {
  let boxes = 0;
  for (const { type, headerStart } of iterateBoxes(reader, start, reader.length)) {
    if (type === 'meta' || boxes === MAX_CHILDREN) {
      throw corruptMedia(`HEIF: an unexpected box at ${headerStart}`);
    }
    boxes += 1;
  }
}

interface ItemEntry {
  readonly item: number;
  readonly type: string;
  /** Offset of the byte whose lowest bit hides the item. */
  readonly flagsAt: number;
}

function readItemEntries(meta: Meta): ItemEntry[] {
  const { reader } = meta;
  const box = toFullBox(reader, findBox(meta, 'iinf'));
  const entries = [...readBoxes(reader, box.start + (box.version === 0 ? 2 : 4), box.end)];
  return entries.flatMap((entry) => {
    const info = toFullBox(reader, entry);
    if (info.type !== 'infe' || info.version < 2) return [];
    const cursor = new BoxCursor(reader, info);
    const item = cursor.uint(info.version === 2 ? 2 : 4);
    cursor.uint(2);
    return [{ item, type: cursor.tag(), flagsAt: info.start - 1 }];
  });
}

interface Reference {
  readonly type: string;
  readonly from: number;
  readonly to: readonly number[];
}

function readReferences(meta: Meta): Reference[] {
  const { reader, boxes } = meta;
  if (!boxes.has('iref')) return [];
  const box = toFullBox(reader, findBox(meta, 'iref'));
  const idBytes = box.version === 0 ? 2 : 4;
  let total = 0;
  return Array.from(readBoxes(reader, box.start, box.end), (reference) => {
    const cursor = new BoxCursor(reader, reference);
    const from = cursor.uint(idBytes);
    const count = cursor.uint(2);
    total += count;
    if (total > MAX_REFERENCES) throw corruptMedia(`HEIF: more than ${MAX_REFERENCES} references`);
    const to = Array.from({ length: count }, () => cursor.uint(idBytes));
    return { type: reference.type, from, to };
  });
}

/** Location of an item as `iloc` declares it (§8.11.3). */
export interface DeclaredLocation {
  readonly item: number;
  /** Construction method: offsets from the start of the file (0), of the `idat` payload (1), or of an item (2). */
  readonly method: number;
  /** Whether the item is in another file. */
  readonly isExternal: boolean;
  readonly extents: readonly { readonly offset: number; readonly length: number }[];
}

export function* iterateLocations(meta: Meta): Generator<DeclaredLocation, void> {
  const box = toFullBox(meta.reader, findBox(meta, 'iloc'));
  const cursor = new BoxCursor(meta.reader, box);
  const sizes = cursor.uint(2);
  const offsetBytes = sizes >>> 12;
  const lengthBytes = (sizes >>> 8) & 0xf;
  const baseBytes = (sizes >>> 4) & 0xf;
  const indexBytes = box.version === 0 ? 0 : sizes & 0xf;
  const idBytes = box.version < 2 ? 2 : 4;
  let totalExtents = 0;
  const items = cursor.uint(idBytes);
  if (items > MAX_CHILDREN) throw corruptMedia(`HEIF: ${items} items`);
  for (let left = items; left > 0; left -= 1) {
    const item = cursor.uint(idBytes);
    const method = box.version === 0 ? 0 : cursor.uint(2) & 0xf;
    const isExternal = cursor.uint(2) !== 0;
    const base = cursor.uint(baseBytes);
    const count = cursor.uint(2);
    totalExtents += count;
    if (totalExtents > MAX_EXTENTS) throw corruptMedia(`HEIF: more than ${MAX_EXTENTS} extents`);
    const extents = Array.from({ length: count }, () => {
      cursor.uint(indexBytes);
      return { offset: base + cursor.uint(offsetBytes), length: cursor.uint(lengthBytes) };
    });
    yield { item, method, isExternal, extents };
  }
}

function readLocations(meta: Meta, sizeBytes: number): Map<number, Extent[]> {
  const locations = new Map<number, Extent[]>();
  for (const { item, method, isExternal, extents } of iterateLocations(meta)) {
    const isHere = !isExternal && method < 2;
    const located = (isHere ? extents : []).map(({ offset, length }) => {
      const container = method === 0 ? { start: 0, end: sizeBytes } : findBox(meta, 'idat');
      const start = container.start + offset;
      const end = start + length;
      if (end > container.end) {
        throw corruptMedia(`HEIF: item ${item} ends at ${end}, after the end of its container`);
      }
      return { start, end };
    });
    locations.set(item, located);
  }
  return locations;
}
