import { inflateSync } from 'node:zlib';
import { ByteReader, corruptMedia, tooLargeMedia } from '../byte-reader.ts';
import type { FramePatch, Size } from '../image-header.ts';
import { ApngFrames } from './apng-frames.ts';
import { readIhdr } from './image-data.ts';
import {
  checkDataCrcs,
  formatPng,
  formatPngChunk,
  iteratePngChunks,
  type PngChunk,
} from './png-chunks.ts';

/** Chunks that define the meaning of samples in all frames (PNG 3rd edition §4.9). */
const SAMPLE_CHUNKS = new Set(['PLTE', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT']);

/** Maximum bytes of profiles, summed over the frames: the decoder reads the profile for each. */
const MAX_PROFILE_BYTES = 256 * 1024 * 1024;
/** Maximum length of the name in an iCCP; a zero, the method and the zlib stream follow (§11.3.2.3). */
const MAX_NAME_BYTES = 79;

/**
 * Splits an APNG that `readPngHeader` accepts into one PNG per frame, with the chunks that apply to all frames.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA`, or `MEDIA_TOO_LARGE` if reading the profiles would take too long
 */
export function* splitApng(apng: Uint8Array): Generator<FramePatch, void> {
  const [header, ...chunks] = readChunks(apng);
  if (header === undefined) throw corruptMedia('APNG: no IHDR');
  const reader = new ByteReader(apng, 'APNG');
  const canvas = readIhdr(reader, header);
  const animation = new ApngFrames(reader, canvas);
  for (const chunk of chunks) animation.visit(chunk);
  animation.finish();
  if (animation.error !== undefined) throw corruptMedia(`APNG: ${animation.error}`);
  checkDataCrcs(apng); // the frames get new ones

  const imageData = chunks.findIndex(({ type }) => type === 'IDAT');
  const shared = chunks.slice(0, imageData).filter(({ type }) => SAMPLE_CHUNKS.has(type));
  for (const chunk of shared) {
    if (chunk.type === 'iCCP') checkProfile(reader, chunk, animation.frames.length);
  }
  for (const frame of animation.frames) {
    const { data, ...placement } = frame;
    const compressed = Buffer.concat(data.map(({ start, end }) => reader.slice(start, end)));
    yield { ...placement, file: formatFrame(apng, header, shared, placement, compressed) };
  }
}

function readChunks(apng: Uint8Array): PngChunk[] {
  const chunks: PngChunk[] = [];
  for (const chunk of iteratePngChunks(apng)) {
    if (chunk.type === 'IEND') break;
    chunks.push(chunk);
  }
  return chunks;
}

/** Throws if a profile is too large to be read for each frame. */
function checkProfile(reader: ByteReader, { start, end }: PngChunk, frames: number): void {
  const chunk = reader.slice(start, end);
  const maxOutputLength = Math.floor(MAX_PROFILE_BYTES / frames);
  const name = chunk.subarray(0, MAX_NAME_BYTES + 1).indexOf(0);
  let isTooLarge = chunk.length > maxOutputLength;
  try {
    inflateSync(chunk.subarray(name + 2), { maxOutputLength });
  } catch (error) {
    isTooLarge ||= error instanceof RangeError;
  }
  if (isTooLarge) {
    throw tooLargeMedia(`APNG: a profile over ${maxOutputLength} bytes in ${frames} frames`);
  }
}

function formatFrame(
  apng: Uint8Array,
  header: PngChunk,
  shared: readonly PngChunk[],
  { widthPx, heightPx }: Size,
  imageData: Buffer,
): Buffer {
  const ihdr = Buffer.from(apng.subarray(header.start, header.end));
  ihdr.writeUInt32BE(widthPx);
  ihdr.writeUInt32BE(heightPx, 4);
  return formatPng([
    formatPngChunk('IHDR', [ihdr]),
    ...shared.map(({ start, end }) => apng.subarray(start - 8, end + 4)),
    formatPngChunk('IDAT', [imageData]),
    formatPngChunk('IEND', []),
  ]);
}
