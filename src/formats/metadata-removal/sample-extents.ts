import { ByteReader, type Extent } from '../byte-reader.ts';

/** Bytes before a table's entries: version, flags, count; in `stsz` and `stz2`, also a size before the count. */
const TABLE_HEADER_BYTES = 8;
const SIZES_HEADER_BYTES = 12;

/** Returns the extents of a track's chunks, in linear time. @throws MediaError for a missing or short table */
export function readSampleExtents(tables: ReadonlyMap<string, Uint8Array>): readonly Extent[] {
  const samples = readSizes(tables);
  const runs = readerOf(tables, 'stsc');
  const is64Bit = tables.has('co64');
  const offsets = readerOf(tables, is64Bit ? 'co64' : 'stco');
  const [runCount, chunkCount] = [runs.u32be(4), offsets.u32be(4)];
  const extents: Extent[] = [];
  let run = 0;
  let sample = 0;
  for (let chunk = 0; chunk < chunkCount && sample < samples.count; chunk += 1) {
    // A run ends before the first chunk of the next one; chunks count from 1.
    const runAt = (index: number): number => TABLE_HEADER_BYTES + 12 * index;
    while (run + 1 < runCount && runs.u32be(runAt(run + 1)) <= chunk + 1) run += 1;
    const count = Math.min(runs.u32be(runAt(run) + 4), samples.count - sample);
    const at = TABLE_HEADER_BYTES + chunk * (is64Bit ? 8 : 4);
    const start = is64Bit ? offsets.u64be(at) : offsets.u32be(at);
    const bytes = samples.sizeOf(sample, count);
    if (bytes > 0) extents.push({ start, end: start + bytes });
    sample += count;
  }
  return extents;
}

interface SampleSizes {
  readonly count: number;
  /** Returns the total size of consecutive samples. */
  readonly sizeOf: (first: number, count: number) => number;
}

function readSizes(tables: ReadonlyMap<string, Uint8Array>): SampleSizes {
  const isCompact = tables.has('stz2');
  const sizes = readerOf(tables, isCompact ? 'stz2' : 'stsz');
  const constantSize = isCompact ? 0 : sizes.u32be(4);
  const count = sizes.u32be(8);
  if (constantSize > 0) return { count, sizeOf: (_, samples) => constantSize * samples };
  const bits = isCompact ? sizes.u8(7) : 32;
  const one = (sample: number): number => {
    const at = SIZES_HEADER_BYTES + Math.floor((sample * bits) / 8);
    if (bits === 32) return sizes.u32be(at);
    if (bits === 16) return sizes.u16be(at);
    // The upper half of a byte has the first of two sizes.
    return bits === 8 ? sizes.u8(at) : (sizes.u8(at) >> (sample % 2 === 0 ? 4 : 0)) & 0xf;
  };
  return {
    count,
    sizeOf: (first, samples) => {
      let bytes = 0;
      for (let sample = first; sample < first + samples; sample += 1) bytes += one(sample);
      return bytes;
    },
  };
}

function readerOf(tables: ReadonlyMap<string, Uint8Array>, type: string): ByteReader {
  return new ByteReader(tables.get(type) ?? new Uint8Array(0), type);
}
