import {
  FIRST_CHUNK,
  formatChunk,
  isWebp,
  readBitstreamSize,
  walkRiffChunks,
} from './riff-chunks.ts';

interface Part {
  readonly fourCc: string;
  /** A view of the parsed bytes, without header and padding. */
  readonly payload: Buffer;
}

/** One frame of an animated WebP: an `ANMF` chunk (RFC 9649 §2.7.1.1). */
export interface WebpFrame {
  /** Offset on the canvas in units of 2 px, as stored. */
  readonly xHalved: number;
  readonly yHalved: number;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly durationMs: number;
  /** Whether the frame is blended over the canvas by its alpha; otherwise it replaces its rectangle. */
  readonly blends: boolean;
  /** Whether the rectangle is cleared after the frame's time. */
  readonly disposes: boolean;
  /** A `VP8L`, or a `VP8 ` with or without an `ALPH` before it. */
  readonly image: readonly Part[];
}

/** The parts of a WebP file that form its image; without metadata. */
export interface WebpContainer {
  readonly canvasWidthPx: number;
  readonly canvasHeightPx: number;
  /** Blue, green, red, alpha: a hint that viewers may use (RFC 9649 §2.7.1.1). */
  readonly background: Uint8Array;
  readonly frames: readonly WebpFrame[];
}

const ANMF_HEADER_BYTES = 16;
const NO_BLEND_FLAG = 0x02;
const DISPOSE_FLAG = 0x01;
const ANIMATION_FLAG = 0x02;
const ALPHA_FLAG = 0x10;
/** Longest duration of a frame, which has 24 bits, in milliseconds. */
export const MAX_DURATION_MS = 2 ** 24 - 1;
const MAX_PLAYS = 2 ** 16 - 1;
/** White, the default of libwebp's animation encoder. */
const DEFAULT_BACKGROUND = Uint8Array.of(255, 255, 255, 255);

/**
 * Parses a whole WebP file, still or animated. A still has one frame, with a duration of 0 ms, that fills the canvas
 * and replaces its content. Throws a plain Error if the bytes are not a WebP file, end too early or contain no image.
 */
export function parseWebp(file: Uint8Array): WebpContainer & { readonly isAnimated: boolean } {
  if (!isWebp(file)) throw new Error('Expected a WebP file but received something else');
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const [riff] = parseParts(bytes, 0);
  const parts = parseParts(bytes, FIRST_CHUNK, 8 + (riff?.payload.length ?? 0));
  const header = parts.find(({ fourCc }) => fourCc === 'VP8X')?.payload;
  const parameters = parts.find(({ fourCc }) => fourCc === 'ANIM')?.payload;
  if (header === undefined || parameters === undefined) {
    const frame = parseStill(parts);
    return {
      isAnimated: false,
      canvasWidthPx: frame.widthPx,
      canvasHeightPx: frame.heightPx,
      background: DEFAULT_BACKGROUND,
      frames: [frame],
    };
  }
  return {
    isAnimated: true,
    canvasWidthPx: header.readUIntLE(4, 3) + 1,
    canvasHeightPx: header.readUIntLE(7, 3) + 1,
    background: parameters.subarray(0, 4),
    frames: parts.filter(({ fourCc }) => fourCc === 'ANMF').map(parseFrame),
  };
}

/**
 * Formats an animated WebP file: `VP8X`, `ANIM` and an `ANMF` for each frame (RFC 9649 §2.7). Durations must be whole
 * and at most 2^24 − 1 ms; `plays` (0 is for ever) is clamped to 65535.
 */
export function formatAnimation(webp: WebpContainer & { readonly plays: number }): Buffer {
  // "Set if any of the frames contain transparency information": libwebp's muxer rejects files that violate this.
  const alphaFlag = webp.frames.some(hasAlpha) ? ALPHA_FLAG : 0;
  const header = Buffer.alloc(10);
  header.writeUInt8(ANIMATION_FLAG | alphaFlag, 0);
  header.writeUIntLE(webp.canvasWidthPx - 1, 4, 3);
  header.writeUIntLE(webp.canvasHeightPx - 1, 7, 3);
  const loopCount = Buffer.alloc(2);
  loopCount.writeUInt16LE(Math.min(webp.plays, MAX_PLAYS));
  return formatChunk(
    'RIFF',
    Buffer.from('WEBP', 'latin1'),
    formatChunk('VP8X', header),
    formatChunk('ANIM', webp.background, loopCount),
    ...webp.frames.map(formatFrame),
  );
}

/** Parses bytes that consist of chunks; the last padding byte may be missing. */
function parseParts(bytes: Buffer, from: number, to: number = bytes.length): Part[] {
  return Array.from(walkRiffChunks(bytes, from, to), ({ fourCc, start, end }) => {
    if (end > to)
      throw new Error(`Expected a RIFF chunk at byte ${start} but received ${to} bytes`);
    return { fourCc, payload: bytes.subarray(start, end) };
  });
}

function parseStill(parts: readonly Part[]): WebpFrame {
  const image = parts.filter(isImage);
  const bitstream = image.find(({ fourCc }) => fourCc !== 'ALPH');
  const size = bitstream && readBitstreamSize(bitstream.fourCc, bitstream.payload);
  if (size === undefined) throw new Error('Expected an image in the WebP but received none');
  return { xHalved: 0, yHalved: 0, ...size, durationMs: 0, blends: false, disposes: false, image };
}

function parseFrame({ payload }: Part): WebpFrame {
  const flags = payload.readUInt8(15);
  return {
    xHalved: payload.readUIntLE(0, 3),
    yHalved: payload.readUIntLE(3, 3),
    widthPx: payload.readUIntLE(6, 3) + 1,
    heightPx: payload.readUIntLE(9, 3) + 1,
    durationMs: payload.readUIntLE(12, 3),
    blends: (flags & NO_BLEND_FLAG) === 0,
    disposes: (flags & DISPOSE_FLAG) !== 0,
    image: parseParts(payload, ANMF_HEADER_BYTES).filter(isImage),
  };
}

function formatFrame(frame: WebpFrame): Buffer {
  const header = Buffer.alloc(ANMF_HEADER_BYTES);
  header.writeUIntLE(frame.xHalved, 0, 3);
  header.writeUIntLE(frame.yHalved, 3, 3);
  header.writeUIntLE(frame.widthPx - 1, 6, 3);
  header.writeUIntLE(frame.heightPx - 1, 9, 3);
  header.writeUIntLE(frame.durationMs, 12, 3);
  header.writeUInt8((frame.blends ? 0 : NO_BLEND_FLAG) | (frame.disposes ? DISPOSE_FLAG : 0), 15);
  const image = frame.image.map(({ fourCc, payload }) => formatChunk(fourCc, payload));
  return formatChunk('ANMF', header, ...image);
}

function isImage({ fourCc }: Part): boolean {
  return fourCc === 'ALPH' || fourCc === 'VP8 ' || fourCc === 'VP8L';
}

/** Whether the chunks declare alpha; an opaque `ALPH` is alpha to a decoder too. */
function hasAlpha({ image }: WebpFrame): boolean {
  return image.some(
    ({ fourCc, payload }) =>
      // alpha_is_used is the bit after both edges (RFC 9649 §3.4).
      fourCc === 'ALPH' || (fourCc === 'VP8L' && (payload.readUInt8(4) & 0x10) !== 0),
  );
}
