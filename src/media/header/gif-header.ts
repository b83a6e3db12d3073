import { ByteReader, corruptMedia, hasAscii } from './byte-reader.ts';
import type { ImageFacts } from './image-facts.ts';

const block = { extension: 0x21, image: 0x2c, trailer: 0x3b } as const;
const label = { graphicControl: 0xf9, comment: 0xfe, application: 0xff } as const;
const loopApplications = ['NETSCAPE2.0', 'ANIMEXTS1.0'];
const defaultDelayCs = 10;
/** LZW codes are at most 12 bit; libnsgif refuses a minimum of as many. */
const maxCodeBits = 12;

/** Screen sizes libnsgif takes for the author's monitor and not for the image. */
const monitorSizes = new Set([
  '640x480',
  '640x512',
  '800x600',
  '1024x768',
  '1280x1024',
  '1600x1200',
]);
const maxTrustedScreenPx = 2048;

/** What has been gathered on the way through the blocks. */
interface Walk {
  widthPx: number;
  heightPx: number;
  readonly delaysMs: number[];
  /** Of the graphic control extension that is waiting for its image. */
  pendingDelayCs: number | undefined;
  plays: number;
  isClean: boolean;
}

/** True where the bytes begin with `GIF8`, the magic libvips asks for. */
export function isGif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'GIF8');
}

/**
 * Reads the facts of a GIF (GIF89a specification), following libnsgif, the decoder of libvips:
 * its canvas, its default delay of 100 ms, its reading of a loop extension (n repeats are n + 1
 * plays, the last extension wins, none is 1).
 *
 * The file may end between two blocks without a trailer. Anything but a block between two blocks
 * ends the animation, as in browsers and libnsgif.
 */
export function readGifHeader(bytes: Uint8Array): ImageFacts {
  const reader = new ByteReader(bytes, 'GIF');
  const walk: Walk = {
    ...readScreen(reader),
    delaysMs: [],
    pendingDelayCs: undefined,
    plays: 1,
    isClean: true,
  };
  let position = 13 + colourTableBytes(reader.u8(10));
  reader.require(0, position);
  while (position < bytes.length) {
    const code = reader.u8(position);
    if (code === block.extension) {
      position = readExtension(reader, walk, position);
    } else if (code === block.image) {
      const end = readImage(reader, walk, position);
      if (end === undefined) {
        walk.isClean = false;
        break;
      }
      position = end;
    } else {
      walk.isClean &&= code === block.trailer && position + 1 === bytes.length;
      break;
    }
  }
  return finish(walk, position >= bytes.length);
}

/** Bytes of the colour table that a packed field announces (GIF89a §18, §20). */
export function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 0x07));
}

/** The logical screen, or 1x1 where libnsgif leaves the size to the first frame. */
function readScreen(reader: ByteReader): { widthPx: number; heightPx: number } {
  const widthPx = reader.u16le(6);
  const heightPx = reader.u16le(8);
  const isTrusted =
    widthPx > 0 &&
    heightPx > 0 &&
    widthPx <= maxTrustedScreenPx &&
    heightPx <= maxTrustedScreenPx &&
    !monitorSizes.has(`${widthPx}x${heightPx}`);
  return isTrusted ? { widthPx, heightPx } : { widthPx: 1, heightPx: 1 };
}

/** Offset after the extension at `position`. */
function readExtension(reader: ByteReader, walk: Walk, position: number): number {
  const kind = reader.u8(position + 1);
  if (kind === label.comment) {
    walk.isClean = false;
    return skipSubBlocks(reader, position + 2);
  }
  // libnsgif goes by the label and skips the first sub-block whatever its size, 0 included.
  const size = reader.u8(position + 2);
  const data = position + 3;
  const end = skipSubBlocks(reader, data + size);
  if (kind === label.graphicControl) {
    walk.pendingDelayCs = reader.u16le(data + 1);
    walk.isClean &&= size === 4 && end === data + size + 1;
  } else {
    walk.isClean &&= kind === label.application && isLoop(reader, position) && end === data + 16;
    if (kind === label.application && isLoop(reader, position)) {
      const repeats = reader.u16le(data + 13);
      walk.plays = repeats === 0 ? 0 : repeats + 1;
    }
  }
  return end;
}

/** True for a loop extension with its one sub-block: 3 bytes, of which the first is 1. */
function isLoop(reader: ByteReader, position: number): boolean {
  const data = position + 3;
  return (
    reader.u8(position + 2) === 11 &&
    loopApplications.some((name) => hasAscii(reader.bytes, data, name)) &&
    reader.u8(data + 11) === 3 &&
    reader.u8(data + 12) === 1
  );
}

/**
 * Offset after the zero that ends the sub-blocks at `position`.
 * Throws `UNPROCESSABLE_MEDIA` where they run past the end.
 */
export function skipSubBlocks(reader: ByteReader, position: number): number {
  const { bytes } = reader;
  let at = position;
  for (;;) {
    const size = bytes[at];
    if (size === undefined) {
      throw corruptMedia(`GIF: the block at ${position} does not end`);
    }
    at += size + 1;
    if (size === 0) {
      return at;
    }
  }
}

/** Offset after the image at `position`; undefined where libnsgif stops reading. */
function readImage(reader: ByteReader, walk: Walk, position: number): number | undefined {
  const right = reader.u16le(position + 1) + reader.u16le(position + 5);
  const bottom = reader.u16le(position + 3) + reader.u16le(position + 7);
  const data = position + 10 + colourTableBytes(reader.u8(position + 9));
  const codeBits = reader.u8(data);
  if (codeBits >= maxCodeBits) {
    return undefined;
  }
  if (walk.delaysMs.length === 0) {
    walk.widthPx = Math.max(walk.widthPx, right);
    walk.heightPx = Math.max(walk.heightPx, bottom);
  }
  const end = skipSubBlocks(reader, data + 1);
  walk.delaysMs.push(10 * (walk.pendingDelayCs ?? defaultDelayCs));
  walk.pendingDelayCs = undefined;
  return end;
}

function finish(walk: Walk, isEndOfFile: boolean): ImageFacts {
  const { widthPx, heightPx, delaysMs, plays } = walk;
  if (delaysMs.length === 0) {
    throw corruptMedia('GIF: no frames');
  }
  // GIF89a appendix B: a graphic control extension and its image are one block.
  if (isEndOfFile && walk.pendingDelayCs !== undefined) {
    throw corruptMedia('GIF: the file ends before the image of the last graphic control extension');
  }
  return {
    format: 'gif',
    widthPx,
    heightPx,
    orientation: 1,
    frames: delaysMs.length,
    animation: delaysMs.length > 1 ? { delaysMs, plays } : undefined,
    isClean: walk.isClean,
  };
}
