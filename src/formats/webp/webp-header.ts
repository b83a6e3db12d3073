import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-orientation.ts';
import type { ImageFacts, Orientation } from '../image-facts.ts';

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, xmp: 0x04, exif: 0x08, icc: 0x20 } as const;
const vp8xBytes = 10;
/** Of the first chunk, where that is VP8X. */
const vp8xEnd = 12 + 8 + vp8xBytes;
const animBytes = 6;
/** The fields of ANMF before the chunks of its frame. */
const frameHeaderBytes = 16;
/** 100 000 frames, the most that can be allowed, have three each and their ANMF; bounds the walk. */
const maxChunks = 400_000;

interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

interface Chunk {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  /** Where the next chunk begins: after the pad byte of an odd payload. */
  readonly next: number;
}

/** What has been gathered on the way through the chunks. */
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

/** True where the bytes begin with a RIFF header of type WEBP. */
export function isWebp(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'RIFF') && hasAscii(bytes, 8, 'WEBP');
}

/** True where the bytes begin with the header of a WebP that calls itself animated. */
export function isAnimatedWebp(bytes: Uint8Array): boolean {
  const isExtended = isWebp(bytes) && hasAscii(bytes, 12, 'VP8X') && bytes.length >= vp8xEnd;
  return isExtended && ((bytes[20] ?? 0) & flag.animation) !== 0;
}

/** The canvas that the VP8X chunk at the beginning tells. */
export function readWebpCanvas(bytes: Uint8Array): Size {
  const reader = new ByteReader(bytes, 'WebP');
  return { widthPx: 1 + reader.u24le(24), heightPx: 1 + reader.u24le(27) };
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
  for (let position = 12; position < riffEnd; ) {
    const chunk = readChunk(reader, walk, position);
    visitChunk(reader, walk, chunk, position === 12);
    position = chunk.next;
  }
  return finish(walk, riffEnd === bytes.length);
}

function startWalk(reader: ByteReader): Walk {
  const isExtended = reader.tag(12) === 'VP8X';
  const flags = isExtended ? reader.u8(20) : 0;
  return {
    canvas: isExtended ? readWebpCanvas(reader.bytes) : undefined,
    flags,
    delaysMs: [],
    chunks: 0,
    still: undefined,
    plays: undefined,
    orientation: undefined,
    isClean: (flags & (flag.icc | flag.exif | flag.xmp)) === 0,
  };
}

function readChunk(reader: ByteReader, walk: Walk, position: number): Chunk {
  walk.chunks += 1;
  if (walk.chunks > maxChunks) throw corruptMedia(`WebP: more than ${maxChunks} chunks`);
  const start = position + 8;
  const type = reader.tag(position);
  const end = start + reader.u32le(position + 4);
  const next = end + (end % 2);
  reader.require(start, next - start);
  return { type, start, end, next };
}

function visitChunk(reader: ByteReader, walk: Walk, chunk: Chunk, isFirst: boolean): void {
  const { type, start, end } = chunk;
  if (walk.canvas === undefined) {
    visitSimple(reader, walk, chunk, isFirst);
    return;
  }
  switch (type) {
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
      walk.still = readBitstreamSize(reader, chunk);
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
function visitSimple(reader: ByteReader, walk: Walk, chunk: Chunk, isFirst: boolean): void {
  if (!isFirst) {
    walk.isClean = false;
  } else if (chunk.type === 'VP8 ' || chunk.type === 'VP8L') {
    walk.still = readBitstreamSize(reader, chunk);
  } else {
    throw corruptMedia(`WebP: the first chunk is ${chunk.type}`);
  }
}

function visitFrame(reader: ByteReader, walk: Walk, canvas: Size, frame: Chunk): void {
  if ((walk.flags & flag.animation) === 0) {
    // libwebp leaves the frames of a file that does not call itself animated out.
    walk.isClean = false;
    return;
  }
  const { start } = frame;
  let image: Size | undefined;
  for (let position = start + frameHeaderBytes; position < frame.end; ) {
    const chunk = readChunk(reader, walk, position);
    if (chunk.end > frame.end) {
      throw corruptMedia(`WebP: chunk ${chunk.type} at ${position} leaves its frame`);
    }
    if (chunk.type === 'VP8 ' || chunk.type === 'VP8L') {
      image ??= readBitstreamSize(reader, chunk);
    } else {
      walk.isClean &&= chunk.type === 'ALPH';
    }
    position = chunk.next;
  }
  if (image === undefined) {
    throw corruptMedia(`WebP: frame at ${start} has no image`);
  }
  // libwebp goes by the size in the bitstream, not by the one in ANMF.
  const right = 2 * reader.u24le(start) + image.widthPx;
  const bottom = 2 * reader.u24le(start + 3) + image.heightPx;
  if (right > canvas.widthPx || bottom > canvas.heightPx) {
    throw corruptMedia(`WebP: frame at ${start} leaves the canvas`);
  }
  walk.delaysMs.push(reader.u24le(start + 12));
}

/** The size in the key frame header (RFC 6386 §9.1) or the lossless header (RFC 9649 §3.4). */
function readBitstreamSize(reader: ByteReader, chunk: Chunk): Size {
  const { type, start, end } = chunk;
  const payload = new ByteReader(reader.slice(start, end), `WebP ${type}at ${start}`);
  if (type === 'VP8L') {
    const bits = payload.u32le(1);
    if (payload.u8(0) !== 0x2f || bits >>> 29 !== 0) {
      throw corruptMedia(`WebP: no VP8L header at ${start}`);
    }
    return { widthPx: 1 + (bits & 0x3fff), heightPx: 1 + ((bits >>> 14) & 0x3fff) };
  }
  const widthPx = payload.u16le(6) & 0x3fff;
  const heightPx = payload.u16le(8) & 0x3fff;
  const isKeyFrame = (payload.u8(0) & 1) === 0;
  const hasStartCode = payload.u24le(3) === 0x2a_01_9d;
  if (!isKeyFrame || !hasStartCode || widthPx === 0 || heightPx === 0) {
    throw corruptMedia(`WebP: no VP8 key frame at ${start}`);
  }
  return { widthPx, heightPx };
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
