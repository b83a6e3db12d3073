import type { FramePatch } from './frame-patch.ts';
import { isGif } from './gif/gif-blocks.ts';
import { peekGif, readGifHeader } from './gif/gif-header.ts';
import { repairGif } from './gif/gif-repair.ts';
import { rewriteGif } from './gif/gif-rewrite.ts';
import { isHeif, readHeifHeader } from './heif/heif-header.ts';
import { prepareHeif } from './heif/heif-preparation.ts';
import type { Animation, ImageFacts, Orientation, Size } from './image-facts.ts';
import { readJpegHeader } from './jpeg/jpeg-header.ts';
import { isJpeg, withPlainJpegExif } from './jpeg/jpeg-segments.ts';
import { splitApng } from './png/apng-split.ts';
import { checkStillData } from './png/image-data.ts';
import { isPng, withPlainPngExif } from './png/png-chunks.ts';
import { peekPng, readPngHeader } from './png/png-header.ts';
import { isWebp, withPlainWebpExif } from './webp/riff-chunks.ts';
import { peekWebp, readWebpHeader } from './webp/webp-header.ts';

/** What can be done with the files of a container without decoding a pixel. */
interface Container {
  readonly hasMagic: (bytes: Uint8Array) => boolean;
  readonly readHeader: typeof readImageFacts;
  /** `peekAnimation`, where the format has animations that are decoded; what is wrong may be thrown. */
  readonly peek?: typeof peekAnimation;
  /**
   * Changes what the decoder stumbles over: EXIF says the orientation and nothing else (`withPlainExif`), and a GIF
   * says where it is transparent (`repairGif`). The picture stays the same.
   *
   * @param orientation as `readImageFacts` gives it
   * @param canvas size of a frame as the decoder gives it
   * @returns the same bytes where there is nothing to change
   */
  readonly prepare: (bytes: Uint8Array, orientation: Orientation, canvas: Size) => Uint8Array;
  /**
   * Writes a file anew with what is seen of it and nothing else; its compressed data are looked through for faults.
   * Only where `ImageFacts.isRewritable` says so.
   *
   * @param canvas size of a frame, as its header tells it
   * @param animation its own; `undefined`: it is a still
   * @throws MediaError `UNPROCESSABLE_MEDIA` where the compressed data are damaged
   */
  readonly rewrite?: (
    bytes: Uint8Array,
    canvas: Size,
    animation: Animation | undefined,
  ) => Uint8Array;
  /**
   * Takes an animation apart whose decoder shows its default image and nothing else: each frame as a file of its own,
   * in their order.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`
   */
  readonly split?: (bytes: Uint8Array) => AsyncIterable<FramePatch>;
  /**
   * Throws where a decoder would go on unpacking long after a still is whole. What else is wrong with it, the decoder
   * says.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA`
   */
  readonly checkStill?: (bytes: Uint8Array) => Promise<void>;
}

/**
 * One row per container, which may hold several formats: its header tells which. Nothing else asks which
 * container an original has: it asks the row.
 */
const containers: readonly Container[] = [
  { hasMagic: isJpeg, readHeader: readJpegHeader, prepare: withPlainJpegExif },
  {
    hasMagic: isPng,
    readHeader: readPngHeader,
    peek: peekPng,
    prepare: withPlainPngExif,
    split: splitApng,
    checkStill: checkStillData,
  },
  {
    hasMagic: isWebp,
    readHeader: readWebpHeader,
    peek: peekWebp,
    prepare: withPlainWebpExif,
  },
  {
    hasMagic: isGif,
    readHeader: readGifHeader,
    peek: peekGif,
    prepare: (gif, _orientation, canvas) => repairGif(gif, canvas),
    rewrite: rewriteGif,
  },
  { hasMagic: isHeif, readHeader: readHeifHeader, prepare: prepareHeif },
];

/** The row of a file, by its first bytes; `undefined` where they are of no image that is decoded here. */
export function containerOf(bytes: Uint8Array): Container | undefined {
  return containers.find(({ hasMagic }) => hasMagic(bytes));
}

/** Whether bytes begin as those of an image that is decoded here do. */
export function isDecodable(prefix: Uint8Array): boolean {
  return containerOf(prefix) !== undefined;
}

/**
 * Reads the facts of an original from its whole bytes; `undefined` where they are no image that
 * is decoded here (contract §3), which is a 415.
 *
 * The container is walked to its end, in linear time, so that a truncated file is noticed even
 * where nothing is decoded later. Pixel data is skipped, so a fault within it is not noticed.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where the magic matches but the container is truncated
 * or corrupt; what decoders merely warn of is no error
 */
export function readImageFacts(bytes: Uint8Array): ImageFacts | undefined {
  return containerOf(bytes)?.readHeader(bytes);
}

/**
 * What the first bytes of an animation tell, before the others are read: facts in which `frames` and
 * `animation` are those that begin within these bytes, so no more than there are. `isClean` is true
 * unless something is known to stand against it.
 *
 * @returns `undefined` where fewer than two frames are seen, or where anything is wrong, which is found out
 *   when the whole is read
 */
export function peekAnimation(prefix: Uint8Array): ImageFacts | undefined {
  try {
    return containerOf(prefix)?.peek?.(prefix);
  } catch {
    return undefined;
  }
}
