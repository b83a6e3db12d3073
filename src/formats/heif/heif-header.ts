import type { SourceFormat } from '../../contract/image-formats.ts';
import { corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts, Prefix } from '../image-facts.ts';
import { mayBeLosslessAvif } from './avif-coding.ts';
import { countCodedPixels, followIdentity } from './heif-derivation.ts';
import { type HeifFile, openHeif } from './heif-file.ts';
import { readShownSize } from './heif-properties.ts';

/**
 * Media types by the major brand of a file that may hold a still image (ISO/IEC 23008-12 Annex B, AV1 Image File Format
 * §6). The primary item alone decides the format.
 */
const MAJOR_BRANDS: ReadonlyMap<string, string> = new Map([
  ['avif', 'image/avif'],
  ['avis', 'image/avif'],
  ['mif1', 'image/heif'],
  ['msf1', 'image/heif-sequence'],
  ...['heic', 'heix', 'heim', 'heis'].map((brand) => [brand, 'image/heic'] as const),
  ...['hevc', 'hevx', 'hevm', 'hevs'].map((brand) => [brand, 'image/heic-sequence'] as const),
]);

/** Brands of a still image among the compatible ones of a file with another major brand (contract §3), by precedence. */
const COMPATIBLE_BRANDS = ['avif', 'avis', 'heic', 'heix', 'mif1'];

/** End of the compatible brands that are read: each prefix that is sniffed has as many bytes. */
const BRANDS_END = 128;

/** Codecs that we decode, by item type. */
const CODECS: Readonly<Record<string, SourceFormat>> = { av01: 'avif', hvc1: 'heic' };

/** Types of items that are derived from others (ISO/IEC 23008-12 §6.6.2). */
const DERIVED_TYPES = ['grid', 'iovl'];

/** Whether the bytes begin with a file type box of a brand that may hold a still image. */
export function isHeif(bytes: Uint8Array): boolean {
  return sniffHeifType(bytes) !== undefined;
}

/** Returns the media type by the brands, of which the major one wins; `undefined` if the file is not a HEIF file. */
export function sniffHeifType(bytes: Uint8Array): string | undefined {
  if (!hasAscii(bytes, 4, 'ftyp')) return undefined;
  const head = Buffer.from(bytes.subarray(0, BRANDS_END));
  const major = MAJOR_BRANDS.get(head.toString('latin1', 8, 12));
  if (major !== undefined) return major;
  const brands: readonly string[] =
    head.toString('latin1', 16, head.readUInt32BE()).match(/.{4}/gs) ?? [];
  const brand = COMPATIBLE_BRANDS.find((each) => brands.includes(each));
  return brand === undefined ? undefined : MAJOR_BRANDS.get(brand);
}

/**
 * Reads the facts of the primary image of a file of ISO boxes (ISO/IEC 23008-12; AV1 Image File Format 1.1); returns
 * `undefined` if the image has another codec than ours, or the file contains only tracks. Of an image sequence (an
 * animated AVIF, a burst), the primary image is shown.
 *
 * The size is that after the transforms `clap` and `irot`, as in libheif. Never clean: neither format is an output
 * format. Boxes after the meta box are not read, as in libheif; a truncated file is detected by items that lie outside
 * of it. Items may lie behind a prefix.
 */
export function readHeifHeader(bytes: Uint8Array, prefix?: Prefix): ImageFacts | undefined {
  const heif = openHeif(bytes, prefix === undefined ? bytes.length : Number.POSITIVE_INFINITY);
  const format = heif && readCodec(heif);
  if (heif === undefined || format === undefined) return undefined;
  const properties = followIdentity(heif, heif.primary).flatMap(heif.propertiesOf);
  const size = readShownSize(heif.meta.reader, properties);
  const codedPixels = countCodedPixels(heif, heif.primary);
  return {
    format,
    ...size,
    orientation: 1,
    frames: 1,
    animation: undefined,
    hasLoss: format === 'heic' || !mayBeLosslessAvif(heif),
    ...(codedPixels > size.widthPx * size.heightPx ? { codedPixels } : {}),
    isClean: false,
  };
}

/**
 * Returns the format of the primary item, and of all its parts if derived; `undefined` if we do not decode it. Overlays
 * are composed by libheif, which decodes AVIF alone.
 */
function readCodec(heif: HeifFile): SourceFormat | undefined {
  const { primary, types, sourcesOf } = heif;
  const typeOf = (item: number): string => {
    const type = types.get(item);
    if (type === undefined) throw corruptMedia(`HEIF: item ${item} does not exist`);
    return type;
  };
  const [shown = primary] = followIdentity(heif, primary);
  const type = typeOf(shown);
  const parts = DERIVED_TYPES.includes(type) ? sourcesOf(shown) : [shown];
  const codecs = new Set(parts.map((part) => CODECS[typeOf(part)]));
  const [codec] = codecs;
  const isDecoded = codecs.size === 1 && !(type === 'iovl' && codec === 'heic');
  return isDecoded ? codec : undefined;
}
