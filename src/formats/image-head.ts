import { MediaError } from '../contract/errors.ts';
import { ByteReader } from './byte-reader.ts';
import { isGif, walkGifBlocks } from './gif/gif-blocks.ts';
import { readGifHeader } from './gif/gif-header.ts';
import { isHeif, readHeifHeader } from './heif/heif-header.ts';
import type { ImageFacts } from './image-facts.ts';
import { readJpegHeader } from './jpeg/jpeg-header.ts';
import { isJpeg, jpegMarker, walkJpegSegments } from './jpeg/jpeg-segments.ts';
import { formatPngChunk, isPng, walkPngChunks } from './png/png-chunks.ts';
import { readPngHeader } from './png/png-header.ts';
import { FIRST_CHUNK, formatChunk, isWebp, nextChunk, walkRiffChunks } from './webp/riff-chunks.ts';
import { readWebpHeader } from './webp/webp-header.ts';

/** Facts that the beginning of an image reveals. */
export interface ImageHead {
  /** Size, format and orientation; `frames` holds only if `isStill`. */
  readonly facts: ImageFacts;
  /** Whether the file is a still, whatever follows. */
  readonly isStill: boolean;
}

interface ImageFile {
  readonly sizeBytes: number;
  /** Reads the bytes `[start, end)`, cut at the file's end. */
  readonly read: (start: number, end: number) => Promise<Uint8Array>;
}

/** Beginnings that are tried, in bytes; the second one has room for a large profile, preview or XMP block. */
const BEGINNINGS = [64 * 1024, 256 * 1024] as const;

/** Bytes of a bitstream of WebP that tell its size. */
const BITSTREAM_BYTES = 16;

const MAX_EXIF_BYTES = 64 * 1024;

/** Most chunks of a WebP up to its EXIF. */
const MAX_CHUNKS = 16;

/** Bytes that a truncated HEIF may lack. */
const MISSING_BYTES = 64 * 1024 * 1024;

/** Longest sub-block of a GIF, with its length. */
const SUB_BLOCK_BYTES = 256;

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, exif: 0x08 } as const;

/**
 * Reads the facts of an image from its beginning, in three ranges of 256 KiB at most: of a damaged file, what its header
 * tells. The beginning is completed to a file whose header `readImageFacts` would read alike. Returns `undefined` if
 * the beginning tells nothing.
 */
export async function readImageHead(file: ImageFile): Promise<ImageHead | undefined> {
  for (const endBytes of BEGINNINGS) {
    const beginning = await file.read(0, endBytes);
    const isWhole = beginning.length === file.sizeBytes || endBytes === BEGINNINGS[1];
    const facts = await attempt(() =>
      isWebp(beginning) ? readWebp(file) : readBeginning(beginning, file, isWhole),
    );
    if (facts !== undefined) {
      const { format, widthPx, heightPx, orientation } = facts;
      const mayMove = format === 'gif' || format === 'apng' || facts.frames > 1;
      return {
        facts: { format, widthPx, heightPx, orientation, ...STILL },
        isStill: !mayMove,
      };
    }
    if (isWhole) break;
  }
  return undefined;
}

const STILL = { frames: 1, animation: undefined, isClean: false } as const;

/** Returns `undefined` where a header is damaged. */
async function attempt<Value>(read: () => Value | Promise<Value>): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA') return undefined;
    throw error;
  }
}

function readBeginning(
  beginning: Uint8Array,
  { sizeBytes }: ImageFile,
  isWhole: boolean,
): ImageFacts | undefined {
  if (isJpeg(beginning)) return readJpegHeader(completeJpeg(beginning));
  if (isPng(beginning)) return readPngHeader(completePng(beginning, isWhole));
  if (isGif(beginning)) return readGifHeader(completeGif(beginning));
  return isHeif(beginning) ? readHeifHeader(beginning, sizeBytes + MISSING_BYTES) : undefined;
}

/** Ends a JPEG at its first scan. */
function completeJpeg(beginning: Uint8Array): Uint8Array {
  let cut = 2;
  for (const { code, at, end } of walkJpegSegments(beginning)) {
    if (code === jpegMarker.sos || end > beginning.length) break;
    cut = Math.max(at, end);
  }
  const scan = [0xff, jpegMarker.sos, 0, 2, 0xff, jpegMarker.eoi];
  return Buffer.concat([beginning.subarray(0, cut), Uint8Array.from(scan)]);
}

/** Ends a PNG at its image data, or at its last complete chunk if there is no more to be had. */
function completePng(beginning: Uint8Array, isWhole: boolean): Uint8Array {
  let cut = 8;
  for (const { type, end } of walkPngChunks(beginning)) {
    if (type === 'IDAT') break;
    if (end + 4 > beginning.length) {
      if (isWhole) break;
      return beginning;
    }
    cut = end + 4;
  }
  const data = [formatPngChunk('IDAT', []), formatPngChunk('IEND', [])];
  return Buffer.concat([beginning.subarray(0, cut), ...data]);
}

/** Ends a GIF within its first frame, whose pixels are left out. */
function completeGif(beginning: Uint8Array): Uint8Array {
  const padded = Buffer.concat([beginning, new Uint8Array(2 * SUB_BLOCK_BYTES)]);
  for (const block of walkGifBlocks(padded)) {
    if (block.kind === 'image') {
      return Buffer.concat([beginning.subarray(0, block.data + 1), Uint8Array.of(0)]);
    }
  }
  return beginning;
}

/** Reads the header of a WebP whose pixels and profile are left out; EXIF may stand at its end. */
async function readWebp({ read, sizeBytes }: ImageFile): Promise<ImageFacts> {
  const kept: Uint8Array[] = [];
  let flags = 0;
  let position = FIRST_CHUNK;
  for (let chunks = 0; chunks < MAX_CHUNKS && position < sizeBytes; chunks += 1) {
    const bytes = await read(position, position + 8 + BITSTREAM_BYTES);
    const [chunk] = walkRiffChunks(bytes, 0);
    if (chunk === undefined) break;
    const { fourCc, start, end } = chunk;
    const payload = bytes.subarray(start, end);
    if (fourCc === 'VP8X') {
      flags = payload[0] ?? 0;
      kept.push(formatChunk(fourCc, payload));
      const canvas = new ByteReader(payload, 'WebP');
      if ((flags & flag.animation) !== 0) {
        const size = { widthPx: 1 + canvas.u24le(4), heightPx: 1 + canvas.u24le(7) };
        return { ...STILL, format: 'webp', ...size, orientation: 1, frames: 2 };
      }
    } else if (fourCc === 'VP8 ' || fourCc === 'VP8L') {
      kept.push(formatChunk(fourCc, payload));
      if ((flags & flag.exif) === 0) break;
    } else if (fourCc === 'EXIF' && end - start <= MAX_EXIF_BYTES) {
      kept.push(formatChunk(fourCc, await read(position + start, position + end)));
      break;
    }
    position = nextChunk(position + end);
  }
  return readWebpHeader(formatChunk('RIFF', Buffer.from('WEBP', 'latin1'), ...kept));
}
