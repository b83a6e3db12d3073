import { ByteReader, corruptMedia } from '../byte-reader.ts';
import type { CodePoints } from '../image-header.ts';
import type { HeifFile } from './heif-file.ts';

/** Colour description of an AV1 image (AV1 specification §6.4.2). */
export interface Av1Sequence extends CodePoints {
  readonly isMonochrome: boolean;
  readonly isFullRange: boolean;
}

/** Bytes in which the sequence header must end: at most 2 OBUs precede it, and it has 32 operating points. */
const PREFIX_BYTES = 512;
const MAX_OBUS_BEFORE = 8;

/** Type of an OBU with a sequence header (§6.2.2). */
const SEQUENCE_HEADER = 1;

const UNSPECIFIED = 2;
const BT_709 = 1;
const SRGB_TRANSFER = 13;
const IDENTITY_MATRIX = 0;

/** @throws MediaError `UNPROCESSABLE_MEDIA` if the image does not begin with a sequence header */
export function readAv1Sequence({ meta, locations }: HeifFile, item: number): Av1Sequence {
  const parts: Uint8Array[] = [];
  let left = PREFIX_BYTES;
  for (const { start, end } of locations.get(item) ?? []) {
    if (left === 0) break;
    const part = meta.reader.slice(start, Math.min(end, start + left));
    left -= part.length;
    parts.push(part);
  }
  const reader = new ByteReader(Buffer.concat(parts), 'AV1');
  let at = 0;
  for (let obus = 0; obus < MAX_OBUS_BEFORE; obus += 1) {
    const header = reader.u8(at);
    at += (header & 4) === 0 ? 1 : 2;
    const [length, start] = (header & 2) === 0 ? [reader.length - at, at] : readLeb128(reader, at);
    if (((header >> 3) & 0xf) === SEQUENCE_HEADER)
      return parseSequence(new BitReader(reader, start));
    at = start + length;
  }
  throw corruptMedia(`AV1: image ${item} without a sequence header`);
}

/** Reads a length in 7 bits per byte, least significant first (§4.10.5). */
function readLeb128(reader: ByteReader, start: number): readonly [value: number, end: number] {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = reader.u8(start + index);
    value += (byte & 0x7f) * 128 ** index;
    if (byte < 0x80) return [value, start + index + 1];
  }
  throw corruptMedia('AV1: a length of more than 8 bytes');
}

/** Parses a sequence header up to its colour description (§5.5.1, §5.5.2). */
function parseSequence(bits: BitReader): Av1Sequence {
  const profile = bits.uint(3);
  bits.skip(1);
  const isReduced = bits.flag();
  if (isReduced) bits.skip(5);
  else skipOperatingPoints(bits);
  const [widthBits, heightBits] = [bits.uint(4) + 1, bits.uint(4) + 1];
  bits.skip(widthBits + heightBits);
  if (!isReduced && bits.flag()) bits.skip(7); // lengths of frame ids
  bits.skip(3);
  if (!isReduced) skipInterTools(bits);
  bits.skip(3);
  return parseColours(bits, profile);
}

function skipOperatingPoints(bits: BitReader): void {
  let delayBits = 0;
  if (bits.flag()) {
    bits.skip(64);
    if (bits.flag()) bits.skipUvlc();
    if (bits.flag()) {
      delayBits = bits.uint(5) + 1;
      bits.skip(42);
    }
  }
  const hasDisplayDelays = bits.flag();
  for (let left = bits.uint(5) + 1; left > 0; left -= 1) {
    bits.skip(12);
    if (bits.uint(5) > 7) bits.skip(1);
    if (delayBits > 0 && bits.flag()) bits.skip(2 * delayBits + 1);
    if (hasDisplayDelays && bits.flag()) bits.skip(4);
  }
}

function skipInterTools(bits: BitReader): void {
  bits.skip(4);
  const hasOrderHint = bits.flag();
  if (hasOrderHint) bits.skip(2);
  // Screen content tools and integer motion vectors: chosen per frame, or forced.
  if (bits.flag() || bits.flag()) {
    if (!bits.flag()) bits.skip(1);
  }
  if (hasOrderHint) bits.skip(3);
}

function parseColours(bits: BitReader, profile: number): Av1Sequence {
  const isDeep = bits.flag();
  if (profile === 2 && isDeep) bits.skip(1);
  const isMonochrome = profile !== 1 && bits.flag();
  const isDescribed = bits.flag();
  const [primaries, transfer, matrix] = isDescribed
    ? [bits.uint(8), bits.uint(8), bits.uint(8)]
    : [UNSPECIFIED, UNSPECIFIED, UNSPECIFIED];
  const isSrgb = primaries === BT_709 && transfer === SRGB_TRANSFER && matrix === IDENTITY_MATRIX;
  const isFullRange = (isSrgb && !isMonochrome) || bits.flag();
  return { primaries, transfer, isMonochrome, isFullRange };
}

/** Reads bits, most significant first. */
class BitReader {
  readonly #reader: ByteReader;
  #position: number;

  constructor(reader: ByteReader, start: number) {
    this.#reader = reader;
    this.#position = start * 8;
  }

  flag(): boolean {
    const at = this.#position;
    this.#position += 1;
    return ((this.#reader.u8(at >> 3) >> (7 - (at & 7))) & 1) === 1;
  }

  uint(bits: number): number {
    let value = 0;
    for (let left = bits; left > 0; left -= 1) value = value * 2 + (this.flag() ? 1 : 0);
    return value;
  }

  skip(bits: number): void {
    this.#position += bits;
  }

  /** Skips a number whose leading zeros determine its length (§4.10.3). */
  skipUvlc(): void {
    let zeros = 0;
    while (!this.flag()) zeros += 1;
    if (zeros < 32) this.skip(zeros);
  }
}
