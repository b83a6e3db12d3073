import type { SourceFormat } from '../../contract/image-formats.ts';
import { corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts } from '../image-facts.ts';
import { countCodedPixels } from './heif-derivation.ts';
import { type HeifFile, openHeif } from './heif-file.ts';
import { readShownSize } from './heif-properties.ts';

/**
 * Major brands of a file that may hold a still image (ISO/IEC 23008-12 Annex B, AV1 Image File Format §6): brands of
 * AV1, of HEVC, and of either. The primary item alone decides the format.
 */
const BRANDS: readonly string[] = [
  ...['avif', 'avis', 'mif1', 'msf1'],
  ...['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'hevm', 'hevs'],
];

/** Codecs that we decode, by item type. */
const CODECS: Readonly<Record<string, SourceFormat>> = { av01: 'avif', hvc1: 'heic' };

/** Types of items that are derived from others (ISO/IEC 23008-12 §6.6.2). */
const DERIVED_TYPES = ['grid', 'iovl', 'iden'];

/** Whether the bytes begin with a file type box of a brand that may hold a still image. */
export function isHeif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 4, 'ftyp') && BRANDS.some((brand) => hasAscii(bytes, 8, brand));
}

/**
 * Reads the facts of the primary image of a file of ISO boxes (ISO/IEC 23008-12; AV1 Image File Format 1.1); returns
 * `undefined` if the image has another codec than ours, or the file contains only tracks. Of an image sequence (an
 * animated AVIF, a burst), the primary image is shown.
 *
 * The size is that after the transforms `clap` and `irot`, as in libheif. Never clean: neither format is an output
 * format. Boxes after the meta box are not read, as in libheif; a truncated file is detected by items that lie outside
 * of it.
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

/** Returns the format of the primary item, and of all its parts if derived; `undefined` if we do not decode it. */
function readCodec({ primary, types, sourcesOf }: HeifFile): SourceFormat | undefined {
  const typeOf = (item: number): string => {
    const type = types.get(item);
    if (type === undefined) throw corruptMedia(`HEIF: item ${item} does not exist`);
    return type;
  };
  const parts = DERIVED_TYPES.includes(typeOf(primary)) ? sourcesOf(primary) : [primary];
  const codecs = new Set(parts.map((part) => CODECS[typeOf(part)]));
  const [codec] = codecs;
  return codecs.size === 1 ? codec : undefined;
}
