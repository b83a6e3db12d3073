import type { ByteReader } from '../byte-reader.ts';
import { type Box, BoxCursor } from './heif-boxes.ts';
import type { HeifFile } from './heif-file.ts';

/** Transfer curve from light to samples: sRGB's own, or a gamma exponent. */
type TransferCurve = 'srgb' | number;

type Vector = readonly [number, number, number];

/** XYZ of red, green and blue at full strength, adapted to D50 as in a profile (ICC.1:2010 Annex E). */
type RgbColumns = readonly [red: Vector, green: Vector, blue: Vector];

/** White point of profiles (ICC.1:2010 §7.2.16). */
const D50: Vector = [0.9642, 1, 0.8249];

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
  const [space, curve] = [SPACES[primaries], CURVES[transfer]];
  if (space === undefined || curve === undefined) return undefined;
  const [red, green, blue] = space;
  const trc = formatCurve(curve);
  return formatProfile([
    ['rXYZ', formatXyz(red)],
    ['gXYZ', formatXyz(green)],
    ['bXYZ', formatXyz(blue)],
    ['rTRC', trc],
    ['gTRC', trc],
    ['bTRC', trc],
  ]);
}

/** Formats an s15Fixed16Number (§4.6). */
function formatFixed(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Math.round(value * 0x1_0000));
  return bytes;
}

function formatXyz(colour: Vector): Buffer {
  return Buffer.concat([Buffer.from('XYZ \0\0\0\0'), ...colour.map(formatFixed)]);
}

/** Formats `para`: a power (type 0), or sRGB's curve (type 3, IEC 61966-2-1). */
function formatCurve(curve: TransferCurve): Buffer {
  const [type, ...values] =
    curve === 'srgb' ? [3, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045] : [0, curve];
  const head = Buffer.from(`para\0\0\0\0\0${String.fromCharCode(type ?? 0)}\0\0`, 'latin1');
  return Buffer.concat([head, ...values.map(formatFixed)]);
}

/** Formats a profile of version 4 (ICC.1:2010 §7.2): header, table of tags, and tags, whose lengths are multiples of 4. */
function formatProfile(tags: readonly (readonly [name: string, data: Buffer])[]): Buffer {
  const head = Buffer.alloc(128 + 4 + 12 * tags.length);
  head.write('\x04\x30\0\0mntrRGB XYZ ', 8, 'latin1');
  head.write('acsp', 36, 'latin1');
  Buffer.concat(D50.map(formatFixed)).copy(head, 68);
  head.writeUInt32BE(tags.length, 128);
  let end = head.length;
  for (const [index, [name, { length }]] of tags.entries()) {
    const entry = 132 + 12 * index;
    head.write(name, entry, 'latin1');
    head.writeUInt32BE(end, entry + 4);
    head.writeUInt32BE(length, entry + 8);
    end += length;
  }
  head.writeUInt32BE(end, 0);
  return Buffer.concat([head, ...tags.map(([, data]) => data)]);
}
