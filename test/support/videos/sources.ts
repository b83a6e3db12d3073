import { readFileSync } from 'node:fs';
import { join, u32be } from '../../formats/containers.ts';
import { readFixtureTable } from '../fixture-table.ts';

export const readVideo = (file = '', folder = 'video'): Buffer =>
  readFileSync(`fixtures/${folder}/${file}`);

export const fixtureVideos = readFixtureTable('video/index.tsv');

/** Videos of every depth, turn, curve and shape, of which nothing but the picture is looked at. */
export const colourVideos = readFixtureTable('video-colours/index.tsv');

/** The size of the poster of such a row, and the colours of its quadrants. */
export const posterOf = (row: Readonly<Record<string, string>>) => ({
  size: `${row.display_width}x${row.display_height}`,
  colours: ['rgb_25_25', 'rgb_75_25', 'rgb_25_75', 'rgb_75_75'].map((quadrant) =>
    (row[quadrant] ?? '').split(',').map(Number),
  ),
});

/** A file in memory that is read by ranges, which are counted. */
export function memorySource(file: Uint8Array) {
  return sparseSource(file.length, [[0, file]]);
}

/** A large file of zeros with some bytes in it, likewise. */
export function sparseSource(
  sizeBytes: number,
  parts: readonly (readonly [start: number, bytes: Uint8Array])[],
) {
  return {
    sizeBytes,
    reads: 0,
    readBytes: 0,
    async read(start: number, end: number): Promise<Uint8Array> {
      this.reads += 1;
      this.readBytes += end - start;
      const range = new Uint8Array(end - start);
      for (const [at, bytes] of parts) {
        const from = Math.max(at, start);
        const to = Math.min(at + bytes.length, end);
        if (from < to) range.set(bytes.subarray(from - at, to - at), from - start);
      }
      return range;
    },
  };
}

/** The header of a box that only takes room. */
export const freeBox = (sizeBytes: number) => join(u32be(sizeBytes), 'free');

/** The offset of the first box of a type, at its header. */
export function findBox(file: Buffer, type: string): number {
  const at = file.indexOf(type, 0, 'latin1') - 4;
  if (at < 0) throw new Error(`Expected a box ${type}`);
  return at;
}

/**
 * A file with so many bytes in front of one of its boxes, or at its end; the offsets of samples behind them are moved.
 * In front of a movie box they belong to the media data, else they are a box of their own.
 */
export function withGap(file: Buffer, before: string | undefined, gapBytes: number) {
  const at = before === undefined ? file.length : findBox(file, before);
  const copy = Buffer.from(file);
  if (before === 'moov') {
    const media = findBox(copy, 'mdat');
    copy.writeUInt32BE(copy.readUInt32BE(media) + gapBytes, media);
  }
  if (before === 'mdat') {
    const table = findBox(copy, 'stco') + 12; // behind its header, version and flags
    for (let entry = copy.readUInt32BE(table); entry > 0; entry -= 1) {
      const offset = table + 4 * entry;
      copy.writeUInt32BE(copy.readUInt32BE(offset) + gapBytes, offset);
    }
  }
  return sparseSource(file.length + gapBytes, [
    [0, copy.subarray(0, at)],
    [at, before === 'moov' ? new Uint8Array() : freeBox(gapBytes)],
    [at + gapBytes, copy.subarray(at)],
  ]);
}
