import type { SourceFormat } from '../../contract/image-formats.ts';
import { corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts } from '../image-facts.ts';
import { countCodedPixels } from './heif-derivation.ts';
import { type HeifFile, openHeif } from './heif-file.ts';
import { readShownSize } from './heif-properties.ts';

/**
 * Major brands of a file that may hold a still image (ISO/IEC 23008-12 Annex B, AV1 Image File Format §6):
 * of AV1, of HEVC, and of either. What it holds is decided by its primary item alone.
 */
const BRANDS: readonly string[] = [
  ...['avif', 'avis', 'mif1', 'msf1'],
  ...['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'hevm', 'hevs'],
];

/** Codecs of items that are decoded here, by item type. */
const CODECS: Readonly<Record<string, SourceFormat>> = { av01: 'avif', hvc1: 'heic' };

/** Items that are put together from others (ISO/IEC 23008-12 §6.6.2). */
const DERIVED_TYPES = ['grid', 'iovl', 'iden'];

/** True where the bytes begin with a file type box of a brand that may hold a still image. */
export function isHeif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 4, 'ftyp') && BRANDS.some((brand) => hasAscii(bytes, 8, brand));
}

/**
 * Reads the facts of a file of ISO boxes (ISO/IEC 23008-12; AV1 Image File Format 1.1), of its primary image
 * alone; `undefined` where no codec of ours has made that, or the file holds only tracks. Of an image sequence
 * (an animated AVIF, a burst) the primary image is what is shown.
 *
 * Size is after the transforms `clap` and `irot`, like libheif gives it. Never clean: neither is an
 * output format. What stands after the meta box is not looked into, for libheif does not either; that
 * every item lies within the file shows a truncated one.
 */
export function readHeifHeader(bytes: Uint8Array): ImageFacts | undefined {
  const heif = openHeif(bytes);
  const format = heif && readCodec(heif);
  if (heif === undefined || format === undefined) return undefined;
  const size = readShownSize(heif.meta.reader, heif.propertiesOf(heif.primary));
  const codedPixels = countCodedPixels(heif, heif.primary);
  return {
    format,
    ...size,
    orientation: 1,
    frames: 1,
    animation: undefined,
    ...(codedPixels > size.widthPx * size.heightPx ? { codedPixels } : {}),
    isClean: false,
  };
}

/** The format of the primary item; of one that is put together, of all its parts; `undefined`: not ours. */
function readCodec({ primary, types, sourcesOf }: HeifFile): SourceFormat | undefined {
  const type = types.get(primary);
  if (type === undefined) throw corruptMedia(`HEIF: primary item ${primary} does not exist`);
  const parts = DERIVED_TYPES.includes(type) ? sourcesOf(primary) : [primary];
  const codecs = new Set(parts.map((part) => CODECS[types.get(part) ?? '']));
  const [codec] = codecs;
  return codecs.size === 1 ? codec : undefined;
}
