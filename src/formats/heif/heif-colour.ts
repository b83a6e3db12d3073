import type { ByteReader } from '../byte-reader.ts';
import type { CodePoints } from '../image-header.ts';
import type { Box } from '../iso-boxes.ts';
import { BoxCursor } from './heif-boxes.ts';
import { followIdentity } from './heif-derivation.ts';
import type { HeifFile } from './heif-file.ts';

/** Types of `colr` with an ICC profile: unrestricted or restricted (ISO/IEC 14496-12 §12.1.5). */
const PROFILE_TYPES = ['prof', 'rICC'];

/** Code points of `colr`, and the conversion to red, green and blue (ITU-T H.273 §8.3). */
export interface HeifCoding extends CodePoints {
  readonly matrix: number;
  readonly isFullRange: boolean;
}

/** Colour information of the primary image that is stored outside of the coded image. */
export interface HeifColour {
  /** ICC profile. It is more exact than code points, which are for readers without ICC support. */
  readonly profile: Uint8Array | undefined;
  readonly coding: HeifCoding | undefined;
  readonly codingBox: Box | undefined;
}

/** Reads `colr` of the image; else of the image that it repeats, or of its first part. */
export function readHeifColour(heif: HeifFile): HeifColour {
  const { reader } = heif.meta;
  const images = followIdentity(heif, heif.primary).toReversed();
  const items = [
    ...images,
    ...images.slice(-1).flatMap((image) => heif.sourcesOf(image).slice(0, 1)),
  ];
  const boxes = items
    .map((item) => heif.propertiesOf(item).filter(({ type }) => type === 'colr'))
    .find(({ length }) => length > 0);
  const ofType = (...types: readonly string[]): Box | undefined =>
    boxes?.find(({ start, end }) => end - start > 4 && types.includes(reader.tag(start)));
  const embedded = ofType(...PROFILE_TYPES);
  const codingBox = ofType('nclx');
  return {
    profile: embedded && reader.slice(embedded.start + 4, embedded.end),
    coding: codingBox && readCoding(reader, codingBox),
    codingBox,
  };
}

function readCoding(reader: ByteReader, box: Box): HeifCoding {
  const cursor = new BoxCursor(reader, box);
  cursor.tag();
  return {
    primaries: cursor.uint(2),
    transfer: cursor.uint(2),
    matrix: cursor.uint(2),
    isFullRange: cursor.uint(1) >= 0x80,
  };
}
