import { ByteReader, type Extent } from '../byte-reader.ts';
import { BoxCursor, findBox, type Meta, readBoxes, toFullBox } from '../heif/heif-boxes.ts';
import { iterateLocations } from '../heif/heif-file.ts';
import { type Box, readBox } from '../iso-boxes.ts';
import { MetadataRemovalError } from './stream-editor.ts';

/** Children of a meta box that are needed for decoding (ISO/IEC 14496-12 §8.11, ISO/IEC 23008-12 §6). */
const KEPT_CHILDREN: readonly string[] = [
  ...['hdlr', 'pitm', 'iinf', 'iloc', 'iref', 'iprp', 'idat', 'dinf', 'ipro', 'grpl'],
];

/** Properties that describe an item: times, texts, private ones (ISO/IEC 23008-12 §6.5). */
const ERASED_PROPERTIES: readonly string[] = ['crtt', 'mdft', 'udes', 'altt', 'uuid'];

/** Item types of metadata. */
const METADATA_TYPES: readonly string[] = ['Exif', 'mime', 'uri '];

/** Types of erased boxes and items, which readers ignore. */
const ERASED_BOX = 'free';
const ERASED_ITEM = 'zero';

/** Offset of a handler box's reserved fields, before its name (ISO/IEC 14496-12 §8.4.3). */
export const HANDLER_RESERVED_AT = 12;

export interface CleanedIndex {
  /** The box, with its length unchanged. */
  readonly bytes: Uint8Array;
  /** Extents of the file after the box that contain metadata. */
  readonly extents: readonly Extent[];
  /** Number of extents of all items, empty ones included. */
  readonly extentCount: number;
}

/**
 * Erases the metadata items of a meta box (ISO/IEC 14496-12 §8.11): types, names, and bytes within the box.
 *
 * @param position offset of the box, with its header, in the file
 * @throws MediaError for a damaged index, MetadataRemovalError if metadata precedes the box
 */
export function cleanItemIndex(box: Uint8Array, position: number): CleanedIndex {
  const bytes = Buffer.from(box);
  const reader = new ByteReader(box, 'HEIF');
  const { start, end } = toFullBox(reader, readBox(reader, 0, box.length));
  const boxes = new Map<string, Box>();
  for (const child of readBoxes(reader, start, end)) {
    // Decoders read only the first box of a type.
    const isKept = KEPT_CHILDREN.includes(child.type) && !boxes.has(child.type);
    if (isKept) boxes.set(child.type, child);
    else eraseBox(bytes, child);
  }
  const meta: Meta = { reader, box: { ...readBox(reader, 0, box.length), start, end }, boxes };
  const handler = boxes.get('hdlr');
  if (handler !== undefined) bytes.fill(0, handler.start + HANDLER_RESERVED_AT, handler.end);
  eraseProperties(meta, bytes);
  const items = eraseItemEntries(meta, bytes);
  const extents: Extent[] = [];
  let extentCount = 0;
  let filledBytes = 0;
  for (const location of boxes.has('iloc') ? iterateLocations(meta) : []) {
    extentCount += location.extents.length;
    if (!items.has(location.item) || location.isExternal) continue;
    if (location.method > 1) throw new MetadataRemovalError('An item is part of another item.');
    const data = location.method === 1 ? findBox(meta, 'idat') : undefined;
    for (const { offset, length } of location.extents) {
      const from = offset + (data?.start ?? -position);
      const to = from + length;
      if (from >= 0 && to <= (data?.end ?? box.length)) {
        filledBytes += length;
        // 100,000 overlapping extents would take minutes.
        if (filledBytes > box.length) throw new MetadataRemovalError('Items of metadata overlap.');
        bytes.fill(0, from, to);
      } else if (data === undefined && from >= box.length) {
        extents.push({ start: position + from, end: position + to });
      } else if (length > 0) {
        throw new MetadataRemovalError('Metadata comes before the index of the file.');
      }
    }
  }
  return { bytes, extents, extentCount };
}

function eraseBox(bytes: Buffer, { headerStart, start, end }: Box): void {
  bytes.write(ERASED_BOX, headerStart + 4, 'latin1');
  bytes.fill(0, start, end);
}

function eraseProperties({ reader, boxes }: Meta, bytes: Buffer): void {
  const properties = boxes.get('iprp');
  if (properties === undefined) return;
  for (const container of readBoxes(reader, properties.start, properties.end)) {
    if (container.type !== 'ipco') continue;
    for (const property of readBoxes(reader, container.start, container.end)) {
      // Properties stay in place, since items refer to them by index.
      if (ERASED_PROPERTIES.includes(property.type)) eraseBox(bytes, property);
    }
  }
}

/** Erases the entries of metadata items; returns their ids. */
function eraseItemEntries({ reader, boxes }: Meta, bytes: Buffer): ReadonlySet<number> {
  const items = new Set<number>();
  const table = boxes.get('iinf');
  if (table === undefined) return items;
  const { version, start, end } = toFullBox(reader, table);
  for (const entry of readBoxes(reader, start + (version === 0 ? 2 : 4), end)) {
    if (entry.type !== 'infe') continue;
    const info = toFullBox(reader, entry);
    const cursor = new BoxCursor(reader, info);
    const idBytes = info.version < 3 ? 2 : 4;
    const item = cursor.uint(idBytes);
    cursor.skip(2);
    // In the first two versions, entries have a media type instead of an item type.
    const type = info.version < 2 ? undefined : cursor.tag();
    const typeAt = info.start + idBytes + 2;
    if (type !== undefined && !METADATA_TYPES.includes(type)) continue;
    items.add(item);
    bytes.fill(0, typeAt, entry.end);
    if (type !== undefined) bytes.write(ERASED_ITEM, typeAt, 'latin1');
  }
  return items;
}
