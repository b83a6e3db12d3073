import { type ByteReader, corruptMedia, type Extent } from '../byte-reader.ts';

/** A box of ISO/IEC 14496-12, as the extent of its payload. */
export interface Box extends Extent {
  readonly type: string;
  /** Offset of the header, which has 8 or 16 bytes. */
  readonly headerStart: number;
}

/** A full box: `start` is behind version and flags. */
export interface FullBox extends Box {
  readonly version: number;
  readonly flags: number;
}

/**
 * Reads the header of the box at `position` inside a parent that ends at `limit`, to which a size of 0 reaches
 * (ISO/IEC 14496-12 §4.2).
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the box leaves its parent
 */
export function readBox(reader: ByteReader, position: number, limit: number): Box {
  const size32 = reader.u32be(position);
  const type = reader.tag(position + 4);
  const start = position + (size32 === 1 ? 16 : 8);
  const size = size32 === 1 ? reader.u64be(position + 8) : size32;
  const end = size === 0 ? limit : position + size;
  if (end < start || end > limit) {
    throw corruptMedia(`HEIF: box ${type} at ${position} of ${size} bytes leaves its parent`);
  }
  return { type, headerStart: position, start, end };
}

/**
 * libheif's limit of children of one box; without it, 50 MB of empty boxes are 6 million objects. Also our limit of
 * table entries, of which libheif accepts still fewer.
 */
export const maxChildren = 20_000;

/** Returns the boxes between two offsets, in order; at most 20,000. */
export function readBoxes(reader: ByteReader, start: number, end: number): Box[] {
  const boxes: Box[] = [];
  for (let position = start; position < end; ) {
    const box = readBox(reader, position, end);
    if (boxes.length === maxChildren) {
      throw corruptMedia(`HEIF: more than ${maxChildren} boxes in one at ${start}`);
    }
    boxes.push(box);
    position = box.end;
  }
  return boxes;
}

/** Reads version and flags at the beginning of a full box. */
export function toFullBox(reader: ByteReader, box: Box): FullBox {
  const { type, headerStart, start, end } = box;
  const word = reader.u32be(start);
  return {
    type,
    headerStart,
    start: start + 4,
    end,
    version: word >>> 24,
    flags: word & 0xff_ffff,
  };
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

  /** Reads an unsigned integer of this many bytes, big-endian; inexact above 2^53, where no file ends. */
  uint(bytes: number): number {
    const at = this.#position;
    this.skip(bytes);
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
        throw corruptMedia(`HEIF: box ${this.#box.type} has a field of ${bytes} bytes`);
    }
  }

  tag(): string {
    const at = this.#position;
    this.skip(4);
    return this.#reader.tag(at);
  }

  skip(bytes: number): void {
    this.#position += bytes;
    if (this.#position > this.#box.end) {
      throw corruptMedia(`HEIF: box ${this.#box.type} ends before ${this.#position}`);
    }
  }

  /** Returns the next bytes, without a copy. */
  bytes(count: number): Uint8Array {
    const at = this.#position;
    this.skip(count);
    return this.#reader.slice(at, this.#position);
  }

  copy(): BoxCursor {
    return new BoxCursor(this.#reader, { ...this.#box, start: this.#position });
  }
}

/** The children of a meta box, the first of each type, and the file that contains the box. */
export interface Meta {
  readonly reader: ByteReader;
  readonly box: Box;
  readonly boxes: ReadonlyMap<string, Box>;
}

/** @throws MediaError `UNPROCESSABLE_MEDIA` if no box has the type */
export function findBox(meta: Meta, type: string): Box {
  const box = meta.boxes.get(type);
  if (box === undefined) throw corruptMedia(`HEIF: no ${type} box`);
  return box;
}
