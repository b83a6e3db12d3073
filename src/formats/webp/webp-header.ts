import { ByteReader, corruptMedia, tagAt } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-block.ts';
import type { ImageHeader, Orientation, Prefix, Size } from '../image-header.ts';
import type { ByteSource } from '../video/av-metadata.ts';
import {
  FIRST_CHUNK,
  iterateRiffChunks,
  nextChunk,
  type RiffChunk,
  readBitstreamSize,
} from './riff-chunks.ts';

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, xmp: 0x04, exif: 0x08, icc: 0x20 } as const;
const VP8X_BYTES = 10;
const ANIM_BYTES = 6;
/** Bytes of ANMF before its chunks. */
const FRAME_HEADER_BYTES = 16;
/** Maximum chunks: 50 000 frames, the maximum setting, of three chunks and an ANMF each. */
const MAX_CHUNKS = 200_000;

/** Reads a WebP header (RFC 9649). As in libwebp 1.6, chunks fill the RIFF size exactly; later bytes do not count. */
export function readWebpHeader(bytes: Uint8Array, prefix?: Prefix): ImageHeader {
  const file = new ByteReader(bytes, 'WebP');
  const riffEnd = 8 + file.u32le(4);
  const reader = prefix ? file : new ByteReader(file.slice(0, riffEnd), 'WebP');
  // A VP8X is the first chunk: flags, and the canvas less one pixel.
  const isExtended = reader.tag(FIRST_CHUNK) === 'VP8X';
  const canvas = isExtended
    ? { widthPx: 1 + reader.u24le(24), heightPx: 1 + reader.u24le(27) }
    : undefined;
  const flags = isExtended ? reader.u8(20) : 0;
  if (prefix) return readPrefix(reader, canvas, (flags & flag.animation) !== 0);
  const delaysMs: number[] = [];
  let still: Size | undefined;
  let plays: number | undefined;
  let orientation: Orientation | undefined;
  let isClean = (flags & (flag.icc | flag.exif | flag.xmp)) === 0;
  let hasLoss = false;
  let chunks = 0;
  const countChunk = ({ fourCc }: RiffChunk): void => {
    chunks += 1;
    hasLoss ||= fourCc === 'VP8 ';
    if (chunks > MAX_CHUNKS) throw corruptMedia(`WebP: more than ${MAX_CHUNKS} chunks`);
  };
  for (const chunk of iterateRiffChunks(reader.bytes, FIRST_CHUNK)) {
    countChunk(chunk);
    const { fourCc, start, end } = chunk;
    const length = end - start;
    reader.require(start, nextChunk(end) - start);
    if (canvas === undefined) {
      // Without VP8X, libwebp ignores all chunks after the first.
      if (chunks > 1) isClean = false;
      else if (isBitstream(chunk)) still = requireSize(reader, chunk);
      else throw corruptMedia(`WebP: the first chunk is ${fourCc}`);
      continue;
    }
    switch (fourCc) {
      case 'VP8X':
        if (chunks > 1 || length < VP8X_BYTES) {
          throw corruptMedia(`WebP: VP8X of ${length} bytes at ${start}`);
        }
        isClean &&= length === VP8X_BYTES;
        break;
      case 'ANIM':
        if (length < ANIM_BYTES) throw corruptMedia(`WebP: ANIM of ${length} bytes at ${start}`);
        plays ??= reader.u16le(start + 4);
        isClean &&= length === ANIM_BYTES;
        break;
      case 'ANMF':
        if ((flags & flag.animation) === 0) {
          // libwebp ignores frames unless VP8X declares an animation.
          isClean = false;
          break;
        }
        isClean = isCleanFrame(reader, canvas, chunk, countChunk) && isClean;
        delaysMs.push(reader.u24le(start + 12));
        break;
      case 'VP8 ':
      case 'VP8L':
        if (still !== undefined || delaysMs.length > 0) {
          throw corruptMedia(`WebP: second image at ${start}`);
        }
        still = requireSize(reader, chunk);
        break;
      case 'ALPH':
        break;
      case 'EXIF':
        // libwebp ignores the chunk if its flag is unset.
        if ((flags & flag.exif) !== 0) {
          orientation ??= readExifOrientation(reader.slice(start, end));
        }
        isClean = false;
        break;
      default:
        isClean = false;
    }
  }
  return {
    format: 'webp',
    ...readSize(canvas, still, delaysMs.length),
    orientation: orientation ?? 1,
    frames: Math.max(delaysMs.length, 1),
    // Without ANIM, libwebp plays once.
    animation: delaysMs.length > 1 ? { delaysMs, plays: plays ?? 1 } : undefined,
    hasLoss,
    isPlain: (flags & (flag.icc | flag.animation)) === 0,
    isClean: isClean && riffEnd === bytes.length && (orientation ?? 1) === 1,
  };
}

function readPrefix(
  reader: ByteReader,
  canvas: Size | undefined,
  isAnimated: boolean,
): ImageHeader {
  const chunks = isAnimated ? [] : iterateRiffChunks(reader.bytes, FIRST_CHUNK);
  let still: Size | undefined;
  for (const chunk of chunks) {
    const end = Math.min(chunk.end, reader.length);
    if (isBitstream(chunk)) still = requireSize(reader, { ...chunk, end });
    if (still !== undefined || canvas === undefined) break;
  }
  return {
    format: 'webp',
    ...readSize(canvas, still ?? canvas, 0),
    orientation: 1,
    frames: isAnimated ? 2 : 1,
    animation: undefined,
    isClean: false,
  };
}

/** Maximum chunks up to EXIF, and maximum bytes of EXIF, that are read by ranges. */
const MAX_CHUNKS_TO_EXIF = 16;
const MAX_EXIF_BYTES = 64 * 1024;

/** Reads the orientation of a still by ranges, since EXIF follows the pixels; 1 if EXIF is missing or long. */
export async function readWebpOrientation(source: ByteSource): Promise<Orientation> {
  const read = (start: number, end: number) => source.read(start, Math.min(end, source.sizeBytes));
  const head = await read(FIRST_CHUNK, FIRST_CHUNK + 9);
  const wanted = flag.exif;
  if (tagAt(head, 0) !== 'VP8X' || ((head[8] ?? 0) & (wanted | flag.animation)) !== wanted)
    return 1;
  let position = FIRST_CHUNK;
  for (let left = MAX_CHUNKS_TO_EXIF; left > 0 && position + 8 <= source.sizeBytes; left -= 1) {
    const [chunk] = iterateRiffChunks(await read(position, position + 8), 0);
    if (chunk === undefined) break;
    const { fourCc, start, end } = chunk;
    if (fourCc === 'EXIF') {
      if (end - start > MAX_EXIF_BYTES) break;
      return readExifOrientation(await read(position + start, position + end));
    }
    position = nextChunk(position + end);
  }
  return 1;
}

/** Checks the chunks of a frame; returns whether it contains only its image. */
function isCleanFrame(
  reader: ByteReader,
  canvas: Size,
  frame: RiffChunk,
  countChunk: (chunk: RiffChunk) => void,
): boolean {
  const { start } = frame;
  let image: Size | undefined;
  let isClean = true;
  for (const chunk of iterateRiffChunks(reader.bytes, start + FRAME_HEADER_BYTES, frame.end)) {
    countChunk(chunk);
    if (chunk.end > frame.end) {
      throw corruptMedia(`WebP: chunk ${chunk.fourCc} at ${chunk.start} exceeds its frame`);
    }
    if (isBitstream(chunk)) image ??= requireSize(reader, chunk);
    else isClean &&= chunk.fourCc === 'ALPH';
  }
  if (image === undefined) throw corruptMedia(`WebP: frame at ${start} has no image`);
  // libwebp uses the size in the bitstream instead of that in ANMF.
  const right = 2 * reader.u24le(start) + image.widthPx;
  const bottom = 2 * reader.u24le(start + 3) + image.heightPx;
  if (right > canvas.widthPx || bottom > canvas.heightPx) {
    throw corruptMedia(`WebP: frame at ${start} exceeds the canvas`);
  }
  return isClean;
}

function isBitstream({ fourCc }: RiffChunk): boolean {
  return fourCc === 'VP8 ' || fourCc === 'VP8L';
}

function requireSize(reader: ByteReader, { fourCc, start, end }: RiffChunk): Size {
  const size = readBitstreamSize(fourCc, reader.slice(start, end));
  if (size === undefined) throw corruptMedia(`WebP: no header of ${fourCc} at ${start}`);
  return size;
}

function readSize(canvas: Size | undefined, still: Size | undefined, frames: number): Size {
  const size = canvas ?? still;
  if (size === undefined || (still === undefined && frames === 0)) {
    throw corruptMedia('WebP: no image');
  }
  if (still !== undefined && frames > 0) throw corruptMedia('WebP: a still image and frames');
  if (still !== undefined && (still.widthPx !== size.widthPx || still.heightPx !== size.heightPx)) {
    throw corruptMedia('WebP: the image does not fill its canvas');
  }
  return size;
}
