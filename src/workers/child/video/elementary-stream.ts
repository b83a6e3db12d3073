import { ByteReader, corruptMedia } from '../../../formats/byte-reader.ts';
import type { Size } from '../../../formats/image-header.ts';
import type { VideoCodec } from '../../../formats/video/av-metadata.ts';

const START_CODE = new Uint8Array([0, 0, 0, 1]);

/** Codes of IVF, which also contains the size; Annex B needs neither. */
const IVF_CODES = { vp8: 'VP80', vp9: 'VP90', av1: 'AV01' } as const;
const IVF_HEADER_BYTES = 32;
const IVF_FRAME_HEADER_BYTES = 12;

/** Far more than in real pictures, which have a few parameter sets and some hundred slices. */
const MAX_UNITS = 20_000;
const MAX_DESCRIPTION_BYTES = 256 * 1024;

/**
 * Wraps one coded frame in the simplest stream that a decoder reads: Annex B with parameter sets, or IVF.
 *
 * @param description the track's `avcC` or `hvcC`; omit if its samples are Annex B
 */
export function toElementaryStream(
  codec: VideoCodec,
  frame: Uint8Array,
  description: Uint8Array | undefined,
  size: Size,
): Uint8Array {
  if (codec !== 'h264' && codec !== 'hevc') return formatIvf(IVF_CODES[codec], frame, size);
  if (description === undefined) return frame;
  if (description.length > MAX_DESCRIPTION_BYTES) throw corruptMedia('too many parameter sets');
  const reader = new ByteReader(description, codec);
  const sets = codec === 'h264' ? readAvcSets(reader) : readHevcSets(reader);
  const units = listUnits(sets, frame);
  return Buffer.concat(units.flatMap((unit) => [START_CODE, unit]));
}

type ParameterSets = readonly [sets: readonly Uint8Array[], lengthBytes: number];

/** Reads `avcC` (ISO/IEC 14496-15 §5.3.3.1). */
function readAvcSets(reader: ByteReader): ParameterSets {
  const sets: Uint8Array[] = [];
  let at = 5;
  // Sequence parameter sets, then picture parameter sets.
  for (const countMask of [0x1f, 0xff]) {
    const count = reader.u8(at) & countMask;
    at = readSets(reader, at + 1, count, sets);
  }
  return [sets, (reader.u8(4) & 3) + 1];
}

/** Reads `hvcC` (ISO/IEC 14496-15 §8.3.3.1). */
export function readHevcSets(reader: ByteReader): ParameterSets {
  const sets: Uint8Array[] = [];
  let at = 23;
  for (let arrays = reader.u8(22); arrays > 0; arrays -= 1) {
    const count = reader.u16be(at + 1);
    at = readSets(reader, at + 3, count, sets);
  }
  return [sets, (reader.u8(21) & 3) + 1];
}

/** Appends units with 16-bit lengths; returns the offset after them. */
function readSets(reader: ByteReader, start: number, count: number, sets: Uint8Array[]): number {
  let at = start;
  for (let left = count; left > 0; left -= 1) {
    const end = at + 2 + reader.u16be(at);
    addUnit(sets, reader.slice(at + 2, end));
    at = end;
  }
  return at;
}

/** Lists the NAL units of a coded picture, parameter sets first. @throws MediaError if a unit exceeds the data */
export function listUnits([sets, lengthBytes]: ParameterSets, data: Uint8Array): Uint8Array[] {
  const units = [...sets];
  for (let at = 0; at < data.length; ) {
    const start = at + lengthBytes;
    let length = 0;
    for (let index = at; index < start; index += 1) length = length * 256 + (data[index] ?? 0);
    const end = start + length;
    if (end > data.length) throw corruptMedia('a NAL unit exceeds its picture');
    if (length > 0) addUnit(units, data.subarray(start, end));
    at = end;
  }
  return units;
}

function addUnit(units: Uint8Array[], unit: Uint8Array): void {
  if (units.length === MAX_UNITS) throw corruptMedia(`more than ${MAX_UNITS} NAL units`);
  units.push(unit);
}

function formatIvf(code: string, frame: Uint8Array, { widthPx, heightPx }: Size): Uint8Array {
  const head = Buffer.alloc(IVF_HEADER_BYTES + IVF_FRAME_HEADER_BYTES);
  head.write(`DKIF\0\0 \0${code}`, 'latin1');
  head.writeUInt16LE(widthPx & 0xffff, 12);
  head.writeUInt16LE(heightPx & 0xffff, 14);
  // A rate of 1, and one frame.
  for (const at of [16, 20, 24]) head.writeUInt32LE(1, at);
  head.writeUInt32LE(frame.length, IVF_HEADER_BYTES);
  return Buffer.concat([head, frame]);
}
