import type { ByteReader } from '../byte-reader.ts';
import { type Box, BoxCursor } from './heif-boxes.ts';
import type { HeifFile } from './heif-file.ts';
import { formatMatrixProfile, type RgbColumns, type TransferCurve } from './matrix-profile.ts';

/** Types of `colr` that hold an ICC profile, whole or restricted (ISO/IEC 14496-12 §12.1.5). */
const PROFILE_TYPES = ['prof', 'rICC'];

/** Colour information of the primary image, besides that in the coded image itself. */
export interface HeifColour {
  /** An ICC profile: the file's own, or one made from its code points; `undefined`: sRGB, or unknown. */
  readonly profile: Uint8Array | undefined;
  /** Conversion of red, green and blue to samples (ITU-T H.273 §8.3). */
  readonly coding: { readonly matrix: number; readonly isFullRange: boolean } | undefined;
}

/** Reads `colr`: that of the image wins over that of its first part. */
export function readHeifColour(heif: HeifFile): HeifColour {
  const { reader } = heif.meta;
  const items = [heif.primary, ...heif.sourcesOf(heif.primary).slice(0, 1)];
  const boxes = items
    .map((item) => heif.propertiesOf(item).filter(({ type }) => type === 'colr'))
    .find(({ length }) => length > 0);
  const ofType = (...types: readonly string[]): Box | undefined =>
    boxes?.find(({ start, end }) => end - start > 4 && types.includes(reader.tag(start)));
  const embedded = ofType(...PROFILE_TYPES);
  const coded = ofType('nclx');
  const points = coded && readCodePoints(reader, coded);
  // A profile is more exact than code points, which a file adds for readers without ICC support.
  const profile = embedded
    ? reader.slice(embedded.start + 4, embedded.end)
    : points && profileOfCodePoints(points.primaries, points.transfer);
  return { profile, coding: points };
}

function readCodePoints(reader: ByteReader, box: Box) {
  const cursor = new BoxCursor(reader, box);
  cursor.tag();
  return {
    primaries: cursor.uint(2),
    transfer: cursor.uint(2),
    matrix: cursor.uint(2),
    isFullRange: cursor.uint(1) >= 0x80,
  };
}

/**
 * Colour spaces by the code point of their primaries (ITU-T H.273 table 2), except those close to sRGB: BT.2020 and
 * Display P3, with the numbers of their published profiles.
 */
const SPACES: Readonly<Record<number, RgbColumns>> = {
  9: [
    [0.673477, 0.279037, -0.001938],
    [0.165665, 0.675339, 0.029984],
    [0.125046, 0.045609, 0.796844],
  ],
  12: [
    [0.515121, 0.241196, -0.001053],
    [0.291977, 0.692245, 0.041885],
    [0.157104, 0.066574, 0.784073],
  ],
};

/**
 * Transfer characteristics by code point (H.273 table 3). Those of cameras (1, 6, 14, 15) are treated as sRGB's, as in
 * browsers. Those of high dynamic range (16, 18) would need tone mapping, which is not implemented.
 */
const CURVES: Readonly<Record<number, TransferCurve>> = {
  1: 'srgb',
  2: 'srgb',
  4: 2.2,
  5: 2.8,
  6: 'srgb',
  8: 1,
  13: 'srgb',
  14: 'srgb',
  15: 'srgb',
};

function profileOfCodePoints(primaries: number, transfer: number): Uint8Array | undefined {
  const space = SPACES[primaries];
  const curve = CURVES[transfer];
  return space === undefined || curve === undefined ? undefined : formatMatrixProfile(space, curve);
}
