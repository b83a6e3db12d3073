import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts } from '../image-facts.ts';
import { readItemSize } from './avif-properties.ts';
import {
  type Box,
  BoxCursor,
  findBox,
  type Meta,
  maxChildren,
  readBox,
  readBoxes,
  toFullBox,
} from './heif-boxes.ts';

/**
 * Major brands of a file that may hold a still AV1 image. libvips knows seven more, all of them
 * HEVC's, which it cannot decode; it does not know `avis`, the animated AVIF.
 */
const brands = ['avif', 'mif1', 'msf1'];
/** Far beyond libheif, which takes 32 an item; bounds the walk. */
const maxExtents = 100_000;
/** Items that are put together from others (ISO/IEC 23008-12 §6.6.2). */
const derivedTypes = ['grid', 'iovl', 'iden'];

/** True where the bytes begin with a file type box of a brand that may hold a still AV1 image. */
export function isAvifLike(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 4, 'ftyp') && brands.some((brand) => hasAscii(bytes, 8, brand));
}

/**
 * Reads the facts of an AVIF (AV1 Image File Format 1.1; ISO/IEC 23008-12), of its primary image
 * alone; `undefined` where that is not AV1 (HEIC in a `mif1` file) or the file holds only tracks.
 *
 * Size is after the transforms `clap` and `irot`, like libheif gives it. Never clean: AVIF is no
 * output format. What stands after the meta box is not looked into, for libheif does not either; that
 * every item lies within the file shows a truncated one.
 */
export function readAvifHeader(bytes: Uint8Array): ImageFacts | undefined {
  const reader = new ByteReader(bytes, 'AVIF');
  const metaBox = findMeta(reader);
  if (metaBox === undefined) {
    return undefined;
  }
  const { start, end } = toFullBox(reader, metaBox);
  const boxes = new Map<string, Box>();
  for (const box of readBoxes(reader, start, end)) {
    if (!boxes.has(box.type)) {
      boxes.set(box.type, box);
    }
  }
  const meta: Meta = { reader, boxes };
  const primary = readPrimaryItem(meta);
  checkItemLocations(meta);
  if (!isAv1(meta, primary)) {
    return undefined;
  }
  return {
    format: 'avif',
    ...readItemSize(meta, primary),
    orientation: 1,
    frames: 1,
    animation: undefined,
    isClean: false,
  };
}

/** `undefined` where a movie box comes first and there is no meta box: an image sequence. */
function findMeta(reader: ByteReader): Box | undefined {
  let hasMovie = false;
  let boxes = 0;
  for (let position = 0; position < reader.length; ) {
    boxes += 1;
    if (boxes > maxChildren) throw corruptMedia(`AVIF: more than ${maxChildren} boxes`);
    const box = readBox(reader, position, reader.length);
    if (box.type === 'meta') {
      refuseSecondMeta(reader, box.end);
      return box;
    }
    hasMovie ||= box.type === 'moov';
    position = box.end;
  }
  if (hasMovie) {
    return undefined;
  }
  throw corruptMedia('AVIF: no meta box');
}

/**
 * Of several meta boxes libheif goes by the last, which may tell of another image than ours. What is
 * no box ends its walk, and so this one.
 */
function refuseSecondMeta(reader: ByteReader, start: number): void {
  let boxes = 0;
  for (let position = start; position + 8 <= reader.length; boxes += 1) {
    const size = reader.u32be(position);
    const isMeta = reader.tag(position + 4) === 'meta';
    if (isMeta || boxes === maxChildren) throw corruptMedia(`AVIF: a box too many at ${position}`);
    const length = size === 1 && position + 16 <= reader.length ? reader.u64be(position + 8) : size;
    if (length < 8) return;
    position += length;
  }
}

function readPrimaryItem(meta: Meta): number {
  const box = toFullBox(meta.reader, findBox(meta, 'pitm'));
  return new BoxCursor(meta.reader, box).uint(box.version === 0 ? 2 : 4);
}

/** The four-character types of all items, by item id (`iinf`, §8.11.6). */
function readItemTypes(meta: Meta): Map<number, string> {
  const { reader } = meta;
  const box = toFullBox(reader, findBox(meta, 'iinf'));
  const types = new Map<number, string>();
  for (const entry of readBoxes(reader, box.start + (box.version === 0 ? 2 : 4), box.end)) {
    const info = toFullBox(reader, entry);
    if (info.type === 'infe' && info.version >= 2) {
      const cursor = new BoxCursor(reader, info);
      const id = cursor.uint(info.version === 2 ? 2 : 4);
      cursor.uint(2);
      types.set(id, cursor.tag());
    }
  }
  return types;
}

/** True for an AV1 item, and for one put together from AV1 items alone. */
function isAv1(meta: Meta, item: number): boolean {
  const types = readItemTypes(meta);
  const type = types.get(item);
  if (type === undefined) {
    throw corruptMedia(`AVIF: primary item ${item} does not exist`);
  }
  if (!derivedTypes.includes(type)) {
    return type === 'av01';
  }
  const sources = readSources(meta, item);
  return sources.length > 0 && sources.every((source) => types.get(source) === 'av01');
}

/** Items an item is derived from (`dimg` of `iref`, §8.11.12). */
function readSources(meta: Meta, item: number): number[] {
  const { reader } = meta;
  const box = toFullBox(reader, findBox(meta, 'iref'));
  const idBytes = box.version === 0 ? 2 : 4;
  for (const reference of readBoxes(reader, box.start, box.end)) {
    const cursor = new BoxCursor(reader, reference);
    if (reference.type === 'dimg' && cursor.uint(idBytes) === item) {
      return Array.from({ length: cursor.uint(2) }, () => cursor.uint(idBytes));
    }
  }
  return [];
}

/** Throws unless the bytes of every item lie within the file or the `idat` box (`iloc`, §8.11.3). */
function checkItemLocations(meta: Meta): void {
  const { reader } = meta;
  const box = toFullBox(reader, findBox(meta, 'iloc'));
  const cursor = new BoxCursor(reader, box);
  const sizes = cursor.uint(2);
  const offsetBytes = sizes >>> 12;
  const lengthBytes = (sizes >>> 8) & 0xf;
  const baseBytes = (sizes >>> 4) & 0xf;
  const indexBytes = box.version === 0 ? 0 : sizes & 0xf;
  const idBytes = box.version < 2 ? 2 : 4;
  let items = cursor.uint(idBytes);
  let extentsInAll = 0;
  if (items > maxChildren) throw corruptMedia(`AVIF: ${items} items`);
  for (; items > 0; items -= 1) {
    const item = cursor.uint(idBytes);
    const method = box.version === 0 ? 0 : cursor.uint(2) & 0xf;
    const isExternal = cursor.uint(2) !== 0;
    const base = cursor.uint(baseBytes);
    const extents = cursor.uint(2);
    extentsInAll += extents;
    if (extentsInAll > maxExtents) throw corruptMedia(`AVIF: more than ${maxExtents} extents`);
    for (let extent = 0; extent < extents; extent += 1) {
      cursor.uint(indexBytes);
      const start = base + cursor.uint(offsetBytes);
      const end = start + cursor.uint(lengthBytes);
      if (!isExternal && method < 2 && end > containerBytes(meta, method)) {
        throw corruptMedia(`AVIF: item ${item} ends at ${end}, after the end of its container`);
      }
    }
  }
}

/** Construction method 0 counts from the start of the file, 1 from that of the `idat` payload. */
function containerBytes(meta: Meta, method: number): number {
  if (method === 0) {
    return meta.reader.length;
  }
  const idat = findBox(meta, 'idat');
  return idat.end - idat.start;
}
