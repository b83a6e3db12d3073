import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import sharp from 'sharp';
import { MediaError } from '../../src/contract/errors.ts';
import { join, u32be } from '../formats/containers.ts';
import { readFixtureTable } from './fixture-table.ts';
import { useTemporaryDirectory } from './temporary-directory.ts';

export const readVideo = (file = '', directory = 'video'): Buffer =>
  readFileSync(`fixtures/${directory}/${file}`);

export const fixtureVideos = readFixtureTable('video/index.tsv');

/** Videos of all depths, rotations, transfer functions and shapes; tests only compare their picture. */
export const colourVideos = readFixtureTable('video-colours/index.tsv');

/** Videos of 16 flat fields in 4 rows, with rare matrices, transfer functions and planes. */
export const fieldVideos = readFixtureTable('video-fields/index.tsv');

/** Returns the expected size of a video's poster, and the colours of its quadrants. */
export const posterOf = (row: Readonly<Record<string, string>>) => ({
  size: `${row.display_width}x${row.display_height}`,
  colours: ['rgb_25_25', 'rgb_75_25', 'rgb_25_75', 'rgb_75_75'].map((quadrant) =>
    (row[quadrant] ?? '').split(',').map(Number),
  ),
});

/** Returns a file in memory that is read by ranges and counts them. */
export function memorySource(file: Uint8Array) {
  return sparseSource(file.length, [[0, file]]);
}

/** Returns a large file of zeros with some parts, which is read by ranges and counts them. */
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

/** Returns the header of a `free` box. */
export const freeBox = (sizeBytes: number) => join(u32be(sizeBytes), 'free');

/** Returns the offset of the first box of a type. */
export function findBox(file: Buffer, type: string): number {
  const at = file.indexOf(type, 0, 'latin1') - 4;
  if (at < 0) throw new Error(`Expected a box ${type}`);
  return at;
}

/**
 * Inserts a gap before a box, or at the end of a file, and corrects the offsets of samples. Before the movie box, the gap
 * belongs to the media data; elsewhere, it is a `free` box.
 */
export function withGap(file: Buffer, before: string | undefined, gapBytes: number) {
  const at = before === undefined ? file.length : findBox(file, before);
  const copy = Buffer.from(file);
  if (before === 'moov') {
    const media = findBox(copy, 'mdat');
    copy.writeUInt32BE(copy.readUInt32BE(media) + gapBytes, media);
  }
  if (before === 'mdat') {
    const table = findBox(copy, 'stco') + 12; // after its header, version and flags
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

/** An id of one byte, and a length of eight. */
const VOID_HEADER_BYTES = 9;

const ebmlLength = (bytes: number) =>
  join(1, Buffer.from(bytes.toString(16).padStart(14, '0'), 'hex'));

/**
 * Inserts a gap before the cues of a WebM or Matroska file, and corrects its seek head. The file must be ffmpeg's, with
 * lengths of eight bytes and a void element after the seek head.
 */
export function withGapBeforeCues(file: Buffer, gapBytes: number) {
  const [segment, head, cues] = ['18538067', '114d9b74', '1c53bb6b'].map((id) =>
    file.indexOf(Buffer.from(id, 'hex')),
  ) as [number, number, number];
  const cuesAt = file.lastIndexOf(Buffer.from('1c53bb6b', 'hex'));
  if (segment < 0 || head < 0 || cuesAt <= cues) throw new Error('Expected a segment with cues');
  const segmentStart = segment + 12;
  const headEnd = head + 5 + ((file[head + 4] ?? 0) & 0x7f);
  const room = file.readUIntBE(headEnd + 3, 6);
  // The position in the last entry grows from two bytes to five.
  const entries = Buffer.from(file.subarray(head + 5, headEnd));
  const entryAt = entries.indexOf(Buffer.from('1c53bb6b53ac82', 'hex'));
  const position = Buffer.alloc(5);
  position.writeUIntBE(cuesAt - segmentStart + gapBytes, 0, 5);
  entries[entryAt - 4] = (entries[entryAt - 4] ?? 0) + 3;
  const newEntries = join(entries.subarray(0, entryAt + 6), 0x85, position);
  const start = join(
    file.subarray(0, segment + 4),
    ebmlLength(file.length - segmentStart + gapBytes),
    file.subarray(segmentStart, head + 4),
    0x80 | newEntries.length,
    newEntries,
    0xec,
    ebmlLength(room - 3),
    Buffer.alloc(room - 3),
    file.subarray(headEnd + VOID_HEADER_BYTES + room, cuesAt),
  );
  if (start.length !== cuesAt) throw new Error('Expected room behind the seek head');
  return sparseSource(file.length + gapBytes, [
    [0, start],
    [cuesAt, join(0xec, ebmlLength(gapBytes - VOID_HEADER_BYTES))],
    [cuesAt + gapBytes, file.subarray(cuesAt)],
  ]);
}

/** Whether ffmpeg is installed, with which tests create and decode videos. */
export const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

const inputs: Readonly<Record<string, readonly string[]>> = {
  h264: ['-f', 'h264', '-c:v', 'h264'],
  hevc: ['-f', 'hevc', '-c:v', 'hevc'],
  vp8: ['-f', 'ivf', '-c:v', 'vp8'],
  vp9: ['-f', 'ivf', '-c:v', 'vp9'],
  av1: ['-f', 'ivf', '-c:v', 'libdav1d'],
};

/** A decoder without a sandbox, which records the requested codecs. */
export class BareDecoder {
  readonly codecs: string[] = [];

  async decode({ codec, stream }: { readonly codec: string; readonly stream: Uint8Array }) {
    this.codecs.push(codec);
    const common =
      '-hide_banner -loglevel error -nostdin -protocol_whitelist pipe -threads 1 -xerror -err_detect explode';
    const output =
      '-i pipe:0 -map 0:v:0 -frames:v 1 -filter_threads 1 -c:v wrapped_avframe -strict -1 -f yuv4mpegpipe pipe:1';
    const args = [...common.split(' '), ...(inputs[codec] ?? []), ...output.split(' ')];
    const { status, stdout } = spawnSync('ffmpeg', args, { input: stream, maxBuffer: Infinity });
    if (status !== 0) throw new MediaError('UNPROCESSABLE_MEDIA');
    return new Uint8Array(stdout);
  }
}

/** Measures the size of a picture, and the maximum distance of the quadrants' centres from the expected colours. */
export async function probe(poster: Uint8Array, colours: readonly (readonly number[])[]) {
  const { data, info } = await sharp(poster).raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  const distances = colours.map((colour, quadrant) => {
    const left = Math.floor((width * (quadrant % 2 === 0 ? 1 : 3)) / 4);
    const top = Math.floor((height * (quadrant < 2 ? 1 : 3)) / 4);
    const at = (top * width + left) * channels;
    const pixel = [...data.subarray(at, at + channels)];
    return Math.max(...pixel.map((level, channel) => Math.abs(level - (colour[channel] ?? 255))));
  });
  return { size: `${width}x${height}`, distance: Math.max(...distances) };
}

/** Runs ffmpeg; returns the file that it creates. */
export async function runFfmpeg(args: string, file: string): Promise<Buffer> {
  const path = joinPath((await useTemporaryDirectory()).path, file);
  execFileSync('ffmpeg', `-loglevel error ${args} ${path}`.split(' '));
  return readFileSync(path);
}
