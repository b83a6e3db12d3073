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

/** Operations on files of a container that decode no pixels; all throw `UNPROCESSABLE_MEDIA` for a damaged file. */
interface Container {
  readonly hasMagic: (bytes: Uint8Array) => boolean;
  /** Reads the header of a complete file, or as much as a prefix contains. */
  readonly readHeader: (bytes: Uint8Array, prefix?: Prefix) => ImageHeader | undefined;
  /** Reads the orientation of a still by ranges, if it is stored after the pixels. */
  readonly readLateOrientation?: typeof readWebpOrientation;
  /** Reduces EXIF to the orientation (`withPlainExif`), and replaces everything else that the decoder cannot handle. */
  readonly prepare: (bytes: Uint8Array, orientation: Orientation) => Uint8Array;
  /** Rewrites a file with `ImageHeader.isRewritable` to its visible parts. */
  readonly rewrite?: typeof rewriteGif;
  /** Reads the ICC profile of an animation that is not split. */
  readonly readProfile?: typeof readWebpProfile;
  /** Splits an animation of which the decoder shows only the default image. */
  readonly split?: typeof splitApng;
  /** Throws for a wrong checksum of pixel data that decoders may not read to the end. */
  readonly checkUndecoded?: typeof checkDataCrcs;
}

/** One row per container, with one or more formats. No other code switches on the container. */
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

export function containerOf(bytes: Uint8Array): Container | undefined {
  return containers.find(({ hasMagic }) => hasMagic(bytes));
}

export function isDecodable(prefix: Uint8Array): boolean {
  return containerOf(prefix) !== undefined;
}

/**
 * Reads the header of a complete original; `undefined` for a container that we do not decode (415). Traverses the
 * container to its end in linear time, to detect truncated files even if nothing is decoded later; ignores damage in
 * pixel data. @throws MediaError `UNPROCESSABLE_MEDIA` if the container is corrupt, unless decoders only warn
 */
export function readImageHeader(bytes: Uint8Array): ImageHeader | undefined {
  return containerOf(bytes)?.readHeader(bytes);
}
