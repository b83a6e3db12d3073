import type { SourceFormat } from '../../contract/image-formats.ts';
import { corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageHeader, Prefix } from '../image-header.ts';
import { mayBeLosslessAvif } from './avif-coding.ts';
import { countCodedPixels, followIdentity } from './heif-derivation.ts';
import { type HeifFile, openHeif } from './heif-file.ts';
import { readShownSize } from './heif-properties.ts';

/** Media types by major brand of a still (ISO/IEC 23008-12 Annex B, AV1 Image File Format §6). */
const MAJOR_BRANDS: ReadonlyMap<string, string> = new Map([
  ['avif', 'image/avif'],
  ['avis', 'image/avif'],
  ['mif1', 'image/heif'],
  ['msf1', 'image/heif-sequence'],
  ...['heic', 'heix', 'heim', 'heis'].map((brand) => [brand, 'image/heic'] as const),
  ...['hevc', 'hevx', 'hevm', 'hevs'].map((brand) => [brand, 'image/heic-sequence'] as const),
]);

/** Compatible brands that identify a still despite another major brand (contract §3), by precedence. */
const COMPATIBLE_BRANDS = ['avif', 'avis', 'heic', 'heix', 'mif1'];

/** End of the compatible brands that are read: the minimum length of a sniffed prefix. */
const BRANDS_END = 128;

const CODECS: Readonly<Record<string, SourceFormat>> = { av01: 'avif', hvc1: 'heic' };

const DERIVED_TYPES = ['grid', 'iovl'];

/** Whether the bytes begin with a file type box of a still's brand. */
export function isHeif(bytes: Uint8Array): boolean {
  return sniffHeifType(bytes) !== undefined;
}

/** Returns the media type by the brands; the major brand has precedence. */
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
 * Reads the primary image of an ISO file (ISO/IEC 23008-12; AV1 Image File Format 1.1), also of an image sequence;
 * `undefined` for other codecs, and for a file of tracks only. As in libheif, the size is that after `clap` and `irot`.
 * Boxes after the meta box are not read; items beyond the end of the file reveal truncation, except in a prefix.
 */
export function readHeifHeader(bytes: Uint8Array, prefix?: Prefix): ImageHeader | undefined {
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

/** Returns the format of the primary item and all its parts. libheif composes overlays, and decodes only AVIF. */
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
