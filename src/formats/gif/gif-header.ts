import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts } from '../image-facts.ts';
import { gifLabel, walkGifBlocks } from './gif-blocks.ts';
import { DEFAULT_DELAY_CS } from './gif-frames.ts';

const loopApplications = ['NETSCAPE2.0', 'ANIMEXTS1.0'];
/** Twice what 100 000 frames, the most that can be allowed, have with their controls; bounds the walk. */
const maxBlocks = 400_000;

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

interface Walk {
  widthPx: number;
  heightPx: number;
  readonly delaysMs: number[];
  /** Of the graphic control extension that is waiting for its image. */
  pendingDelayCs: number | undefined;
  plays: number;
  isClean: boolean;
  /** See `ImageFacts.isRewritable`. */
  isPlain: boolean;
}

/**
 * What the first bytes of an animated GIF tell. It may end after any frame, so what ends with the last
 * whole one is a GIF.
 *
 * @returns `undefined` where fewer than two frames are seen
 */
export function peekGif(prefix: Uint8Array): ImageFacts | undefined {
  let frames = 0;
  let end = 0;
  walkGifBlocks(prefix, {
    onImage: (_start, _data, imageEnd) => {
      frames += 1;
      end = imageEnd;
    },
  });
  return frames < 2 ? undefined : readGifHeader(prefix.subarray(0, end));
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
    isPlain: true,
  };
  let blocks = 0;
  const countBlock = (): void => {
    blocks += 1;
    if (blocks > maxBlocks) throw corruptMedia(`GIF: more than ${maxBlocks} blocks`);
  };
  const end = walkGifBlocks(bytes, {
    onExtension: (label, start, end) => {
      countBlock();
      readExtension(reader, walk, label, start, end);
    },
    onImage: (start, data) => {
      countBlock();
      readImage(reader, walk, start, data);
    },
  });
  if (end.kind === 'truncated') throw corruptMedia('GIF: the file ends within a block');
  // The decoder refuses some of it, and is asked.
  if (end.kind === 'junk') walk.isClean = walk.isPlain = false;
  if (end.kind === 'trailer') walk.isClean &&= end.position + 1 === bytes.length;
  return finish(walk, end.kind === 'end of file');
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

function readExtension(
  reader: ByteReader,
  walk: Walk,
  label: number,
  start: number,
  end: number,
): void {
  const data = start + 3;
  if (label === gifLabel.graphicControl) {
    walk.pendingDelayCs = reader.u16le(data + 1);
    walk.isClean &&= reader.u8(start + 2) === 4 && end === data + 5;
  } else if (label === gifLabel.application && isLoop(reader, start)) {
    const repeats = reader.u16le(data + 13);
    walk.plays = repeats === 0 ? 0 : repeats + 1;
    walk.isClean &&= end === data + 16;
  } else {
    walk.isClean = false;
  }
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

function readImage(reader: ByteReader, walk: Walk, start: number, data: number): void {
  const hasColours = ((reader.u8(10) | reader.u8(start + 9)) & 0x80) !== 0;
  const isEmpty = reader.u16le(start + 5) === 0 || reader.u16le(start + 7) === 0;
  const rootBits = reader.u8(data);
  walk.isPlain &&= hasColours && !isEmpty && rootBits >= 2 && rootBits <= 8;
  if (walk.delaysMs.length === 0) {
    walk.widthPx = Math.max(walk.widthPx, reader.u16le(start + 1) + reader.u16le(start + 5));
    walk.heightPx = Math.max(walk.heightPx, reader.u16le(start + 3) + reader.u16le(start + 7));
  }
  walk.delaysMs.push(10 * (walk.pendingDelayCs ?? DEFAULT_DELAY_CS));
  walk.pendingDelayCs = undefined;
}

function finish(walk: Walk, isEndOfFile: boolean): ImageFacts {
  const { widthPx, heightPx, delaysMs, plays } = walk;
  if (delaysMs.length === 0) throw corruptMedia('GIF: no frames');
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
    isRewritable: walk.isPlain,
  };
}
