import { type ByteReader, corruptMedia } from '../byte-reader.ts';

/** A box of ISO/IEC 14496-12: the offsets of its payload. */
export interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** A full box: `start` is behind version and flags. */
export interface FullBox extends Box {
  readonly version: number;
  readonly flags: number;
}

/**
 * Reads the header of the box at `position` inside a parent that ends at `limit`.
 *
 * A size of 0 reaches to the parent's end (ISO/IEC 14496-12 §4.2).
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where the box leaves its parent
 */
export function readBox(reader: ByteReader, position: number, limit: number): Box {
  const size32 = reader.u32be(position);
  const type = reader.tag(position + 4);
  const start = position + (size32 === 1 ? 16 : 8);
  const size = size32 === 1 ? reader.u64be(position + 8) : size32;
  const end = size === 0 ? limit : position + size;
  if (end < start || end > limit) {
    throw corruptMedia(`AVIF: box ${type} at ${position} of ${size} bytes leaves its parent`);
  }
  return { type, start, end };
}

/**
 * libheif's limit of children of one box; without one, 50 MB of empty boxes are 6 million objects. It
 * is ours for the entries of a table, too, of which libheif takes still fewer.
 */
export const maxChildren = 20_000;

/** The boxes between two offsets, in order; at most 20,000. */
export function readBoxes(reader: ByteReader, start: number, end: number): Box[] {
  const boxes: Box[] = [];
  for (let position = start; position < end; ) {
    const box = readBox(reader, position, end);
    if (boxes.length === maxChildren) {
      throw corruptMedia(`AVIF: more than ${maxChildren} boxes in one at ${start}`);
    }
    boxes.push(box);
    position = box.end;
  }
  return boxes;
}

/** Reads version and flags, with which a full box begins. */
export function toFullBox(reader: ByteReader, box: Box): FullBox {
  const word = reader.u32be(box.start);
  return { ...box, version: word >>> 24, flags: word & 0xff_ffff, start: box.start + 4 };
}

/** Reads a box's fields one after another and never past its end. */
export class BoxCursor {
  readonly #reader: ByteReader;
  readonly #box: Box;
  #position: number;

  constructor(reader: ByteReader, box: Box) {
    this.#reader = reader;
    this.#box = box;
    this.#position = box.start;
  }

  /** Unsigned integer of 0 (which reads as 0), 1, 2, 4 or 8 bytes, big-endian. */
  uint(bytes: number): number {
    const at = this.#position;
    this.#position += bytes;
    if (this.#position > this.#box.end) {
      throw corruptMedia(`AVIF: box ${this.#box.type} ends within a field at ${at}`);
    }
    switch (bytes) {
      case 0:
        return 0;
      case 1:
        return this.#reader.u8(at);
      case 2:
        return this.#reader.u16be(at);
      case 4:
        return this.#reader.u32be(at);
      case 8:
        return this.#reader.u64be(at);
      default:
        throw corruptMedia(`AVIF: box ${this.#box.type} has a field of ${bytes} bytes at ${at}`);
    }
  }

  tag(): string {
    const at = this.#position;
    this.uint(4);
    return this.#reader.tag(at);
  }
}

/** The children of a meta box, the first of each type, and the file around them. */
export interface Meta {
  readonly reader: ByteReader;
  readonly boxes: ReadonlyMap<string, Box>;
}

/**
 * The child of a type.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where there is none
 */
export function findBox(meta: Meta, type: string): Box {
  const box = meta.boxes.get(type);
  if (box === undefined) {
    throw corruptMedia(`AVIF: no ${type} box`);
  }
  return box;
}
