import { type ByteReader, corruptMedia } from '../byte-reader.ts';
import { type Box, iterateBoxes } from '../iso-boxes.ts';

/** A full box; `start` is after version and flags. */
export interface FullBox extends Box {
  readonly version: number;
  readonly flags: number;
}

/** Maximum children (libheif's limit) and table entries: 50 MB of empty boxes would be 6 million objects. */
export const MAX_CHILDREN = 20_000;

/** Yields at most 20,000 boxes between two offsets. @throws MediaError if a box exceeds its parent */
export function* readBoxes(reader: ByteReader, start: number, end: number): Generator<Box, void> {
  let boxes = 0;
  for (const box of iterateBoxes(reader, start, end)) {
    if (!box.fits) throw corruptMedia(`HEIF: box ${box.type} at ${box.headerStart} does not fit`);
    boxes += 1;
    if (boxes > MAX_CHILDREN) {
      throw corruptMedia(`HEIF: more than ${MAX_CHILDREN} boxes in one at ${start}`);
    }
    yield box;
  }
}

export function toFullBox(reader: ByteReader, box: Box): FullBox {
  const word = reader.u32be(box.start);
  return { ...box, start: box.start + 4, version: word >>> 24, flags: word & 0xff_ffff };
}

export class BoxCursor {
  readonly #reader: ByteReader;
  readonly #box: Box;
  #position: number;

  constructor(reader: ByteReader, box: Box) {
    this.#reader = reader;
    this.#box = box;
    this.#position = box.start;
  }

  /** Reads a big-endian unsigned integer; inexact above 2^53, which exceeds any file. */
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

  bytes(count: number): Uint8Array {
    const at = this.#position;
    this.skip(count);
    return this.#reader.slice(at, this.#position);
  }

  copy(): BoxCursor {
    return new BoxCursor(this.#reader, { ...this.#box, start: this.#position });
  }
}

/** Meta box of a file, with its children: the first of each type. */
export interface Meta {
  readonly reader: ByteReader;
  readonly box: Box;
  readonly boxes: ReadonlyMap<string, Box>;
}

/** @throws MediaError `UNPROCESSABLE_MEDIA` if the type is missing */
export function findBox(meta: Meta, type: string): Box {
  const box = meta.boxes.get(type);
  if (box === undefined) throw corruptMedia(`HEIF: no ${type} box`);
  return box;
}
