import { MediaError } from '../../contract/errors.ts';
import { ByteReader, corruptMedia } from '../byte-reader.ts';
import type { FramePatch } from '../frame-patch.ts';
import { type ApngFrame, ApngFrames } from './apng-frames.ts';
import { formatPng, formatPngChunk, type PngChunk, walkPngChunks } from './png-chunks.ts';

/** Chunks before the image data that tell what its samples mean, in all frames alike (PNG 3rd edition §4.9). */
const sampleChunks = new Set(['PLTE', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT']);

/** Of these chunks, summed over the frames: each decodes them anew. Profiles of photographs have 0.5 to 3 kB. */
const maxSampleBytes = 64 * 1024 * 1024;

/**
 * Splits an APNG into PNGs, one for each frame: its IHDR with the size of the frame's region, what tells the
 * meaning of the samples, and the frame's image data.
 *
 * @param apng its container has been walked through by `readPngHeader`, which tells of every fault
 * @throws MediaError `UNPROCESSABLE_MEDIA`, or `MEDIA_TOO_LARGE` where profiles would be read for ever
 */
export function* splitApng(apng: Uint8Array): Generator<FramePatch, void> {
  const [header, ...chunks] = readChunks(apng);
  if (header === undefined) throw corruptMedia('APNG: no IHDR');
  const reader = new ByteReader(apng, 'APNG');
  const size = { widthPx: reader.u32be(header.start), heightPx: reader.u32be(header.start + 4) };
  const walk = new ApngFrames(reader, size);
  for (const chunk of chunks) walk.visit(chunk);
  walk.finish();
  if (walk.fault !== undefined) throw corruptMedia(`APNG: ${walk.fault}`);

  const imageData = chunks.findIndex(({ type }) => type === 'IDAT');
  const shared = chunks.slice(0, imageData).filter(({ type }) => sampleChunks.has(type));
  const sharedBytes = shared.reduce((sum, { start, end }) => sum + end - start, 0);
  if (sharedBytes * walk.frames.length > maxSampleBytes) {
    const cause = new Error(
      `APNG: ${sharedBytes} bytes of profile for ${walk.frames.length} frames`,
    );
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }
  for (const frame of walk.frames) {
    const { data, ...placement } = frame;
    yield { ...placement, file: formatFrame(apng, header, shared, frame) };
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

function formatFrame(
  apng: Uint8Array,
  header: PngChunk,
  shared: readonly PngChunk[],
  { widthPx, heightPx, data }: ApngFrame,
): Buffer {
  const ihdr = Buffer.from(apng.subarray(header.start, header.end));
  ihdr.writeUInt32BE(widthPx);
  ihdr.writeUInt32BE(heightPx, 4);
  const idat = data.map(({ start, end }) => apng.subarray(start, end));
  return formatPng([
    formatPngChunk('IHDR', [ihdr]),
    // Each with its length before it and its CRC behind.
    ...shared.map(({ start, end }) => apng.subarray(start - 8, end + 4)),
    formatPngChunk('IDAT', idat),
    formatPngChunk('IEND', []),
  ]);
}
