import { type Animation, roundDelays } from '../image-header.ts';
import {
  FIRST_CHUNK,
  formatChunk,
  isWebp,
  iterateRiffChunks,
  readBitstreamSize,
} from './riff-chunks.ts';

interface Chunk {
  readonly fourCc: string;
  /** Without header and padding. */
  readonly payload: Buffer;
}

/** An `ANMF` chunk (RFC 9649 §2.7.1.1). */
interface Frame {
  /** Position and size of the rectangle, duration and flags. */
  readonly header: Buffer;
  /** A `VP8L`, or a `VP8 ` that may follow an `ALPH`. */
  readonly image: readonly Chunk[];
}

interface EncodedWebp {
  /** Width and height, as in `VP8X`. */
  readonly canvas: Buffer;
  /** Blue, green, red and alpha; a hint for viewers (RFC 9649 §2.7.1.1). */
  readonly background: Uint8Array;
  readonly frames: readonly Frame[];
  readonly isAnimated: boolean;
}

const FRAME_HEADER_BYTES = 16;
/** Offsets in the header: rectangle size (two 24-bit numbers less one), duration, flags. */
const SIZE_AT = 6;
const DURATION_AT = 12;
const FLAGS_AT = 15;
/** Replaces the rectangle instead of blending over the canvas. */
const NO_BLEND_FLAG = 0x02;
/** Clears the rectangle after the frame's time. */
const DISPOSE_FLAG = 0x01;
/** Flags of `VP8X`. */
const ANIMATION_FLAG = 0x02;
const ALPHA_FLAG = 0x10;
const MAX_DURATION_MS = 2 ** 24 - 1;
const MAX_PLAYS = 2 ** 16 - 1;
/** White, as libwebp's animation encoder writes by default. */
const DEFAULT_BACKGROUND = Uint8Array.of(255, 255, 255, 255);

/**
 * Delay in milliseconds that the encoder gets for every frame: the duration of an encoded frame then reveals how many
 * source frames libwebp has merged into it.
 *
 * libvips replaces delays up to 10 ms by 100. A duration of 24 bits has room for 838 860 merged frames; beyond that,
 * libwebp starts another, transparent frame (anim_encode.c), and the sum stays correct.
 */
export const SENTINEL_DELAY_MS = 20;

/**
 * Restores the exact delays and play count of an animated WebP, which its encoder cannot keep. If libwebp has merged k
 * equal frames, the first delay stays with the merged frame, and k − 1 transparent frames of 40 bytes get the others. A
 * still, which libwebp writes if all frames are equal, becomes an animation again.
 *
 * @param encoded sRGB file with `SENTINEL_DELAY_MS` for every frame; only pixels, canvas and background are kept
 * @throws Error if the file is truncated, or has another number of frames
 */
export function restoreAnimation(encoded: Uint8Array, animation: Animation): Buffer {
  const delaysMs = roundDelays(animation.delaysMs, 1, MAX_DURATION_MS);
  const { canvas, background, frames: merged, isAnimated } = readEncoded(encoded);
  let sourceFrames = 0;
  const frames = merged.flatMap((frame) => {
    const first = sourceFrames;
    sourceFrames += isAnimated ? countSourceFrames(frame) : delaysMs.length;
    return splitFrame(frame, delaysMs.slice(first, sourceFrames));
  });
  if (sourceFrames !== delaysMs.length || sourceFrames === 0) {
    throw new Error(
      `Expected ${delaysMs.length} source frames in the WebP but received ${sourceFrames}`,
    );
  }
  // "Set if any of the frames contain transparency information": libwebp's muxer rejects files that violate this.
  const alphaFlag = frames.some(({ image }) => image.some(hasAlpha)) ? ALPHA_FLAG : 0;
  const plays = Buffer.alloc(2);
  plays.writeUInt16LE(Math.min(animation.plays, MAX_PLAYS));
  return formatChunk(
    'RIFF',
    Buffer.from('WEBP', 'latin1'),
    formatChunk('VP8X', Uint8Array.of(ANIMATION_FLAG | alphaFlag, 0, 0, 0), canvas),
    formatChunk('ANIM', background, plays),
    ...frames.map(({ header, image }) =>
      formatChunk(
        'ANMF',
        header,
        ...image.map(({ fourCc, payload }) => formatChunk(fourCc, payload)),
      ),
    ),
  );
}

/**
 * Whether each frame covers the canvas and hides what it showed before, so that scaled frames compose to the scaled
 * animation. Other frames leave traces of earlier ones at their edges. Returns `false` for a damaged file, whose error
 * the decoder reports.
 */
export function replacesCanvas(webp: Uint8Array): boolean {
  try {
    const { canvas, frames } = readEncoded(webp);
    return frames.every(({ header, image }) => {
      const replaces = (header.readUInt8(FLAGS_AT) & NO_BLEND_FLAG) !== 0 || !image.some(hasAlpha);
      const isAtOrigin = header.readUIntLE(0, SIZE_AT) === 0;
      return replaces && isAtOrigin && header.subarray(SIZE_AT, DURATION_AT).equals(canvas);
    });
  } catch {
    return false;
  }
}

/** Reads a WebP file. A still becomes one frame of 0 ms that replaces the canvas. */
function readEncoded(file: Uint8Array): EncodedWebp {
  if (!isWebp(file)) throw new Error('Expected a WebP file but received something else');
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const [riff] = readChunks(bytes, 0);
  const chunks = readChunks(bytes, FIRST_CHUNK, 8 + (riff?.payload.length ?? 0));
  const find = (name: string) => chunks.find(({ fourCc }) => fourCc === name)?.payload;
  const [extended, parameters] = [find('VP8X'), find('ANIM')];
  if (extended !== undefined && parameters !== undefined) {
    const frames = chunks.flatMap(({ fourCc, payload }) => {
      if (fourCc !== 'ANMF') return [];
      const image = readChunks(payload, FRAME_HEADER_BYTES).filter(isImage);
      return [{ header: payload.subarray(0, FRAME_HEADER_BYTES), image }];
    });
    const background = parameters.subarray(0, 4);
    return { canvas: extended.subarray(4, 10), background, frames, isAnimated: true };
  }
  const image = chunks.filter(isImage);
  const bitstream = image.find(({ fourCc }) => fourCc !== 'ALPH');
  const size = bitstream && readBitstreamSize(bitstream.fourCc, bitstream.payload);
  if (size === undefined) throw new Error('Expected an image in the WebP but received none');
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntLE(size.widthPx - 1, SIZE_AT, 3);
  header.writeUIntLE(size.heightPx - 1, SIZE_AT + 3, 3);
  header.writeUInt8(NO_BLEND_FLAG, FLAGS_AT);
  const canvas = header.subarray(SIZE_AT, SIZE_AT + 6);
  const frames = [{ header, image }];
  return { canvas, background: DEFAULT_BACKGROUND, frames, isAnimated: false };
}

function readChunks(bytes: Buffer, from: number, to: number = bytes.length): Chunk[] {
  return Array.from(iterateRiffChunks(bytes, from, to), ({ fourCc, start, end }) => {
    if (end > to)
      throw new Error(`Expected a RIFF chunk at byte ${start} but received ${to} bytes`);
    return { fourCc, payload: bytes.subarray(start, end) };
  });
}

function isImage({ fourCc }: Chunk): boolean {
  return fourCc === 'ALPH' || fourCc === 'VP8 ' || fourCc === 'VP8L';
}

/** Whether a chunk declares alpha, even if its `ALPH` is opaque. */
function hasAlpha({ fourCc, payload }: Chunk): boolean {
  // alpha_is_used is the bit after both edges (RFC 9649 §3.4).
  return fourCc === 'ALPH' || (fourCc === 'VP8L' && ((payload[4] ?? 0) & 0x10) !== 0);
}

function countSourceFrames({ header }: Frame): number {
  const durationMs = header.readUIntLE(DURATION_AT, 3);
  const count = durationMs / SENTINEL_DELAY_MS;
  if (!Number.isInteger(count) || count === 0) {
    throw new Error(
      `Expected a multiple of ${SENTINEL_DELAY_MS} ms for a frame but received ${durationMs} ms`,
    );
  }
  return count;
}

/** Returns the frame with the first delay, and a frame without effect for each other delay. */
function splitFrame(frame: Frame, delaysMs: readonly number[]): Frame[] {
  const flags = frame.header.readUInt8(FLAGS_AT);
  return delaysMs.map((durationMs, index) => {
    // The rectangle is cleared only after the last delay.
    const disposal = index === delaysMs.length - 1 ? flags & DISPOSE_FLAG : 0;
    // A frame without effect has one pixel, unless it clears the rectangle.
    const hasRectangle = index === 0 || disposal !== 0;
    const header = Buffer.from(hasRectangle ? frame.header : new Uint8Array(FRAME_HEADER_BYTES));
    header.writeUIntLE(durationMs, DURATION_AT, 3);
    header.writeUInt8((index === 0 ? flags & NO_BLEND_FLAG : 0) | disposal, FLAGS_AT);
    if (index === 0) return { header, image: frame.image };
    const [width, height] = [header.readUIntLE(SIZE_AT, 3), header.readUIntLE(SIZE_AT + 3, 3)];
    const payload = createTransparentVp8l(width + 1, height + 1);
    return { header, image: [{ fourCc: 'VP8L', payload }] };
  });
}

/**
 * Creates the VP8L bitstream of a transparent black image of any size (RFC 9649 §3): the signature 0x2f; 32 bits of
 * header, low bits first: width − 1 (14 bits), height − 1 (14), alpha is used (1), version 0 (3); then 24 bits: no
 * transform, no colour cache, no meta prefix codes, and five simple prefix codes (1 0 0 0) of the symbol 0, which need
 * no bits per pixel.
 */
export function createTransparentVp8l(widthPx: number, heightPx: number): Buffer {
  const bitstream = Buffer.from([0x2f, 0, 0, 0, 0, 0x88, 0x88, 0x08]);
  bitstream.writeUInt32LE((widthPx - 1) | ((heightPx - 1) << 14) | (1 << 28), 1);
  return bitstream;
}
