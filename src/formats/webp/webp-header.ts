import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-block.ts';
import type { ImageFacts, Orientation, Size } from '../image-facts.ts';
import {
  FIRST_CHUNK,
  isWebp,
  nextChunk,
  type RiffChunk,
  readBitstreamSize,
  walkRiffChunks,
} from './riff-chunks.ts';

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, xmp: 0x04, exif: 0x08, icc: 0x20 } as const;
const vp8xBytes = 10;
/** Of the first chunk, where that is VP8X. */
const vp8xEnd = FIRST_CHUNK + 8 + vp8xBytes;
const animBytes = 6;
/** The fields of ANMF before the chunks of its frame. */
const frameHeaderBytes = 16;
/** 100 000 frames, the most that can be allowed, have three each and their ANMF; bounds the walk. */
const maxChunks = 400_000;

interface Walk {
  readonly canvas: Size | undefined;
  readonly flags: number;
  readonly delaysMs: number[];
  chunks: number;
  still: Size | undefined;
  plays: number | undefined;
  orientation: Orientation | undefined;
  isClean: boolean;
}

/**
 * What the first bytes of an animated WebP tell: the frames whose header lies within them.
 *
 * @returns `undefined` where these are fewer than two, or it does not call itself animated
 */
export function peekWebp(prefix: Uint8Array): ImageFacts | undefined {
  const isExtended = isWebp(prefix) && hasAscii(prefix, FIRST_CHUNK, 'VP8X');
  if (!isExtended || prefix.length < vp8xEnd) return undefined;
  const reader = new ByteReader(prefix, 'WebP');
  if ((reader.u8(20) & flag.animation) === 0) return undefined;
  const delaysMs: number[] = [];
  for (const { fourCc, start } of walkRiffChunks(prefix, FIRST_CHUNK)) {
    if (start + frameHeaderBytes > prefix.length) break;
    if (fourCc === 'ANMF') delaysMs.push(readDuration(reader, start));
  }
  if (delaysMs.length < 2) return undefined;
  return {
    format: 'webp',
    ...readCanvas(reader),
    orientation: 1,
    frames: delaysMs.length,
    animation: { delaysMs, plays: 0 },
    isClean: true,
  };
}

/**
 * Reads the facts of a WebP (RFC 9649), still or animated.
 *
 * The RIFF size binds as in libwebp 1.6: the file holds it to the last pad byte, chunks fill it
 * exactly, and what stands after it is no part of the image.
 */
export function readWebpHeader(bytes: Uint8Array): ImageFacts {
  const file = new ByteReader(bytes, 'WebP');
  const riffEnd = 8 + file.u32le(4);
  const reader = new ByteReader(file.slice(0, riffEnd), 'WebP');
  const walk = startWalk(reader);
  for (const chunk of walkRiffChunks(reader.bytes, FIRST_CHUNK)) {
    countChunk(walk);
    reader.require(chunk.start, nextChunk(chunk.end) - chunk.start);
    visitChunk(reader, walk, chunk);
  }
  return finish(walk, riffEnd === bytes.length);
}

function startWalk(reader: ByteReader): Walk {
  const isExtended = reader.tag(FIRST_CHUNK) === 'VP8X';
  const flags = isExtended ? reader.u8(20) : 0;
  return {
    canvas: isExtended ? readCanvas(reader) : undefined,
    flags,
    delaysMs: [],
    chunks: 0,
    still: undefined,
    plays: undefined,
    orientation: undefined,
    isClean: (flags & (flag.icc | flag.exif | flag.xmp)) === 0,
  };
}

/** The canvas that the VP8X chunk at the beginning tells. */
function readCanvas(reader: ByteReader): Size {
  return { widthPx: 1 + reader.u24le(24), heightPx: 1 + reader.u24le(27) };
}

/** The duration in the payload of an ANMF (RFC 9649 §2.7.1.1). */
function readDuration(reader: ByteReader, start: number): number {
  return reader.u24le(start + 12);
}

function countChunk(walk: Walk): void {
  walk.chunks += 1;
  if (walk.chunks > maxChunks) throw corruptMedia(`WebP: more than ${maxChunks} chunks`);
}

function visitChunk(reader: ByteReader, walk: Walk, chunk: RiffChunk): void {
  const { fourCc, start, end } = chunk;
  const isFirst = walk.chunks === 1;
  if (walk.canvas === undefined) {
    visitSimple(reader, walk, chunk, isFirst);
    return;
  }
  switch (fourCc) {
    case 'VP8X':
      if (!isFirst || end - start < vp8xBytes) {
        throw corruptMedia(`WebP: VP8X of ${end - start} bytes at ${start}`);
      }
      walk.isClean &&= end - start === vp8xBytes;
      break;
    case 'ANIM':
      if (end - start < animBytes) {
        throw corruptMedia(`WebP: ANIM of ${end - start} bytes at ${start}`);
      }
      walk.plays ??= reader.u16le(start + 4);
      walk.isClean &&= end - start === animBytes;
      break;
    case 'ANMF':
      visitFrame(reader, walk, walk.canvas, chunk);
      break;
    case 'VP8 ':
    case 'VP8L':
      if (walk.still !== undefined || walk.delaysMs.length > 0) {
        throw corruptMedia(`WebP: second image at ${start}`);
      }
      walk.still = requireSize(reader, chunk);
      break;
    case 'ALPH':
      break;
    case 'EXIF':
      // Without its flag libwebp does not see the chunk.
      if ((walk.flags & flag.exif) !== 0) {
        walk.orientation ??= readExifOrientation(reader.slice(start, end));
      }
      walk.isClean = false;
      break;
    default:
      walk.isClean = false;
  }
}

/** A file without VP8X is its first chunk; libwebp does not look at the others. */
function visitSimple(reader: ByteReader, walk: Walk, chunk: RiffChunk, isFirst: boolean): void {
  if (!isFirst) {
    walk.isClean = false;
  } else if (isBitstream(chunk)) {
    walk.still = requireSize(reader, chunk);
  } else {
    throw corruptMedia(`WebP: the first chunk is ${chunk.fourCc}`);
  }
}

function visitFrame(reader: ByteReader, walk: Walk, canvas: Size, frame: RiffChunk): void {
  if ((walk.flags & flag.animation) === 0) {
    // libwebp leaves the frames of a file that does not call itself animated out.
    walk.isClean = false;
    return;
  }
  const { start } = frame;
  let image: Size | undefined;
  for (const chunk of walkRiffChunks(reader.bytes, start + frameHeaderBytes, frame.end)) {
    countChunk(walk);
    if (chunk.end > frame.end) {
      throw corruptMedia(`WebP: chunk ${chunk.fourCc} at ${chunk.start} leaves its frame`);
    }
    if (isBitstream(chunk)) {
      image ??= requireSize(reader, chunk);
    } else {
      walk.isClean &&= chunk.fourCc === 'ALPH';
    }
  }
  if (image === undefined) throw corruptMedia(`WebP: frame at ${start} has no image`);
  // libwebp goes by the size in the bitstream, not by the one in ANMF.
  const right = 2 * reader.u24le(start) + image.widthPx;
  const bottom = 2 * reader.u24le(start + 3) + image.heightPx;
  if (right > canvas.widthPx || bottom > canvas.heightPx) {
    throw corruptMedia(`WebP: frame at ${start} leaves the canvas`);
  }
  walk.delaysMs.push(readDuration(reader, start));
}

function isBitstream({ fourCc }: RiffChunk): boolean {
  return fourCc === 'VP8 ' || fourCc === 'VP8L';
}

function requireSize(reader: ByteReader, { fourCc, start, end }: RiffChunk): Size {
  const size = readBitstreamSize(fourCc, reader.slice(start, end));
  if (size === undefined) throw corruptMedia(`WebP: no header of ${fourCc} at ${start}`);
  return size;
}

function finish(walk: Walk, isAtEnd: boolean): ImageFacts {
  const { canvas, still, delaysMs, plays } = walk;
  const size = canvas ?? still;
  if (size === undefined || (still === undefined && delaysMs.length === 0)) {
    throw corruptMedia('WebP: no image');
  }
  if (still !== undefined && delaysMs.length > 0) {
    throw corruptMedia('WebP: a still image and frames');
  }
  if (still !== undefined && (still.widthPx !== size.widthPx || still.heightPx !== size.heightPx)) {
    throw corruptMedia('WebP: the image does not fill its canvas');
  }
  const orientation = walk.orientation ?? 1;
  return {
    format: 'webp',
    widthPx: size.widthPx,
    heightPx: size.heightPx,
    orientation,
    frames: Math.max(delaysMs.length, 1),
    // Without ANIM libwebp plays once.
    animation: delaysMs.length > 1 ? { delaysMs, plays: plays ?? 1 } : undefined,
    isClean: walk.isClean && isAtEnd && orientation === 1,
  };
}
