import { isGif } from './gif/gif-blocks.ts';
import { rewriteGif } from './gif/gif-frames.ts';
import { readGifHeader } from './gif/gif-header.ts';
import { isHeif, readHeifHeader } from './heif/heif-header.ts';
import { prepareHeif } from './heif/heif-preparation.ts';
import type { ImageFacts, Orientation, Prefix } from './image-facts.ts';
import { readJpegHeader } from './jpeg/jpeg-header.ts';
import { isJpeg, withPlainJpegExif } from './jpeg/jpeg-segments.ts';
import { splitApng } from './png/apng-split.ts';
import { checkDataCrcs, isPng, withPlainPngExif } from './png/png-chunks.ts';
import { readPngHeader } from './png/png-header.ts';
import { isWebp, readWebpProfile, withPlainWebpExif } from './webp/riff-chunks.ts';
import { readWebpHeader, readWebpOrientation } from './webp/webp-header.ts';

/** Operations on a container's files that decode no pixel; each rejects a damaged file by `UNPROCESSABLE_MEDIA`. */
interface Container {
  readonly hasMagic: (bytes: Uint8Array) => boolean;
  /** Reads the facts of a whole file, or those that stand before the pixels in its prefix. */
  readonly readHeader: (bytes: Uint8Array, prefix?: Prefix) => ImageFacts | undefined;
  /** Reads the orientation of a still by ranges, if it stands behind the pixels. */
  readonly readLateOrientation?: typeof readWebpOrientation;
  /**
   * Changes only what the decoder cannot handle: reduces EXIF to the orientation (`withPlainExif`). The image stays the
   * same, and the bytes if there is nothing to change.
   */
  readonly prepare: (bytes: Uint8Array, orientation: Orientation) => Uint8Array;
  /** Rewrites a file with only its visible parts, if `ImageFacts.isRewritable`. */
  readonly rewrite?: typeof rewriteGif;
  /** Reads the ICC profile of an animation that is not split. */
  readonly readProfile?: typeof readWebpProfile;
  /** Splits an animation whose decoder shows only its default image. */
  readonly split?: typeof splitApng;
  /** Rejects pixel data with a wrong checksum: for files that no decoder reads to their end, as it would reject these. */
  readonly checkUndecoded?: typeof checkDataCrcs;
}

/**
 * One row per container, which may hold several formats: its header decides. No other code asks which container an
 * original has; code asks the row.
 */
const containers: readonly Container[] = [
  { hasMagic: isJpeg, readHeader: readJpegHeader, prepare: withPlainJpegExif },
  {
    hasMagic: isPng,
    readHeader: readPngHeader,
    prepare: withPlainPngExif,
    split: splitApng,
    checkUndecoded: checkDataCrcs,
  },
  {
    hasMagic: isWebp,
    readHeader: readWebpHeader,
    readLateOrientation: readWebpOrientation,
    prepare: withPlainWebpExif,
    readProfile: readWebpProfile,
  },
  {
    hasMagic: isGif,
    readHeader: readGifHeader,
    prepare: (gif) => gif,
    rewrite: rewriteGif,
  },
  { hasMagic: isHeif, readHeader: readHeifHeader, prepare: prepareHeif },
];

/** Returns the row of a file by its first bytes; `undefined` if we decode no such image. */
export function containerOf(bytes: Uint8Array): Container | undefined {
  return containers.find(({ hasMagic }) => hasMagic(bytes));
}

/** Whether bytes begin like an image that we decode. */
export function isDecodable(prefix: Uint8Array): boolean {
  return containerOf(prefix) !== undefined;
}

/**
 * Reads the facts of an original from its whole bytes; returns `undefined` if we decode no such image (contract §3),
 * which is a 415.
 *
 * The container is walked to its end, in linear time, so that truncated files are detected even if nothing is decoded
 * later. Pixel data is skipped, so faults within it are not detected.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the magic matches but the container is truncated or corrupt; faults of
 *   which decoders merely warn are not errors
 */
export function readImageFacts(bytes: Uint8Array): ImageFacts | undefined {
  return containerOf(bytes)?.readHeader(bytes);
}
