import { isGif } from './gif/gif-blocks.ts';
import { rewriteGif } from './gif/gif-frames.ts';
import { readGifHeader } from './gif/gif-header.ts';
import { isHeif, readHeifHeader } from './heif/heif-header.ts';
import { prepareHeif } from './heif/heif-preparation.ts';
import type { ImageHeader, Orientation, Prefix } from './image-header.ts';
import { readJpegHeader } from './jpeg/jpeg-header.ts';
import { isJpeg, withPlainJpegExif } from './jpeg/jpeg-segments.ts';
import { splitApng } from './png/apng-split.ts';
import { checkDataCrcs, isPng, withPlainPngExif } from './png/png-chunks.ts';
import { readPngHeader } from './png/png-header.ts';
import { isWebp, readWebpProfile, withPlainWebpExif } from './webp/riff-chunks.ts';
import { readWebpHeader, readWebpOrientation } from './webp/webp-header.ts';

/** Operations on a container's files that decode no pixel; each throws `UNPROCESSABLE_MEDIA` for a damaged file. */
interface Container {
  readonly hasMagic: (bytes: Uint8Array) => boolean;
  /** Reads the header of a whole file, or those that precede the pixels in a prefix. */
  readonly readHeader: (bytes: Uint8Array, prefix?: Prefix) => ImageHeader | undefined;
  /** Reads the orientation of a still by ranges, if it follows the pixels. */
  readonly readLateOrientation?: typeof readWebpOrientation;
  /** Reduces EXIF to the orientation (`withPlainExif`), and replaces what else the decoder cannot handle. */
  readonly prepare: (bytes: Uint8Array, orientation: Orientation) => Uint8Array;
  /** Rewrites a file with `ImageHeader.isRewritable` to its visible parts. */
  readonly rewrite?: typeof rewriteGif;
  /** Reads the ICC profile of an animation that is not split. */
  readonly readProfile?: typeof readWebpProfile;
  /** Splits an animation whose decoder shows only its default image. */
  readonly split?: typeof splitApng;
  /** Throws for a wrong checksum of pixel data that no decoder reads to the end. */
  readonly checkUndecoded?: typeof checkDataCrcs;
}

/** One row per container, which may hold several formats. No other code switches on the container. */
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

/** Returns the row of a file by its first bytes. */
export function containerOf(bytes: Uint8Array): Container | undefined {
  return containers.find(({ hasMagic }) => hasMagic(bytes));
}

export function isDecodable(prefix: Uint8Array): boolean {
  return containerOf(prefix) !== undefined;
}

/**
 * Reads the header of an original from its whole bytes; returns `undefined` for a container that we do not decode (415).
 *
 * Walks the container to its end, in linear time, so that truncated files are detected even if nothing is decoded
 * later. Skips pixel data and the damage in it.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if the container is truncated or corrupt, unless decoders merely warn
 */
export function readImageHeader(bytes: Uint8Array): ImageHeader | undefined {
  return containerOf(bytes)?.readHeader(bytes);
}
