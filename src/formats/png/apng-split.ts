import { inflateSync } from 'node:zlib';
import { MediaError } from '../../contract/errors.ts';
import { ByteReader, corruptMedia } from '../byte-reader.ts';
import type { FramePatch } from '../frame-patch.ts';
import type { Size } from '../image-facts.ts';
import { ApngFrames } from './apng-frames.ts';
import { checkImageData, mostImageBytes, readImageHeader } from './image-data.ts';
import { formatPng, formatPngChunk, type PngChunk, walkPngChunks } from './png-chunks.ts';

/** Chunks before the image data that tell what its samples mean, in all frames alike (PNG 3rd edition §4.9). */
const sampleChunks = new Set(['PLTE', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT']);

/**
 * What may be read of profiles, summed over the frames, since each reads them anew: 250 kB in each of
 * 1 024. Profiles of photographs have 0.5 to 3 kB.
 */
const maxProfileBytes = 256 * 1024 * 1024;
/** Of an iCCP, before the zlib stream (§11.3.2.3): a name of at most 79 bytes, its end, the method. */
const profileNameBytes = 79;

/**
 * Splits an APNG into PNGs, one for each frame: its IHDR with the size of the frame's region, what tells the
 * meaning of the samples, and the frame's image data.
 *
 * @param apng its container has been walked through by `readPngHeader`, which tells of every fault
 * @throws MediaError `UNPROCESSABLE_MEDIA`, or `MEDIA_TOO_LARGE` where profiles would be read for ever
 */
export async function* splitApng(apng: Uint8Array): AsyncGenerator<FramePatch, void> {
  const [header, ...chunks] = readChunks(apng);
  if (header === undefined) throw corruptMedia('APNG: no IHDR');
  const reader = new ByteReader(apng, 'APNG');
  const canvas = readImageHeader(reader, header);
  const walk = new ApngFrames(reader, canvas);
  for (const chunk of chunks) walk.visit(chunk);
  walk.finish();
  if (walk.fault !== undefined) throw corruptMedia(`APNG: ${walk.fault}`);

  const imageData = chunks.findIndex(({ type }) => type === 'IDAT');
  const shared = chunks.slice(0, imageData).filter(({ type }) => sampleChunks.has(type));
  for (const chunk of shared) {
    if (chunk.type === 'iCCP') checkProfile(reader, chunk, walk.frames.length);
  }
  for (const frame of walk.frames) {
    const { data, ...placement } = frame;
    const compressed = Buffer.concat(data.map(({ start, end }) => reader.slice(start, end)));
    await checkImageData(compressed, mostImageBytes({ ...canvas, ...placement }));
    yield { ...placement, file: formatFrame(apng, header, shared, placement, compressed) };
  }
}

/** All chunks up to IEND; what comes after it is no part of the picture. */
function readChunks(apng: Uint8Array): PngChunk[] {
  const chunks: PngChunk[] = [];
  for (const chunk of walkPngChunks(apng)) {
    if (chunk.type === 'IEND') break;
    chunks.push(chunk);
  }
  return chunks;
}

/** Throws where a profile is too large to be read for each frame; whether it is one, its decoder says. */
function checkProfile(reader: ByteReader, { start, end }: PngChunk, frames: number): void {
  const chunk = reader.slice(start, end);
  const maxOutputLength = Math.floor(maxProfileBytes / frames);
  const name = chunk.subarray(0, profileNameBytes + 1).indexOf(0);
  let isTooLarge = chunk.length > maxOutputLength;
  try {
    inflateSync(chunk.subarray(name + 2), { maxOutputLength });
  } catch (error) {
    isTooLarge ||= error instanceof RangeError;
  }
  if (!isTooLarge) return;
  const cause = new Error(`APNG: a profile over ${maxOutputLength} bytes in ${frames} frames`);
  throw new MediaError('MEDIA_TOO_LARGE', { cause });
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
    // Each with its length before it and its CRC behind.
    ...shared.map(({ start, end }) => apng.subarray(start - 8, end + 4)),
    formatPngChunk('IDAT', [imageData]),
    formatPngChunk('IEND', []),
  ]);
}
