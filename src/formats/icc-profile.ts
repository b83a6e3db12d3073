import { hasAscii } from './byte-reader.ts';

/** Curve from samples to linear light, both 0 to 1. */
export type ToneCurve = (sample: number) => number;

type Row = readonly [number, number, number];

export type Matrix = readonly [Row, Row, Row];

/** Profile with a curve per channel and, for colours, a matrix (ICC.1:2022 §8.3.3, §8.6). */
export type MatrixProfile =
  | { readonly kind: 'grey'; readonly curve: ToneCurve }
  | {
      readonly kind: 'rgb';
      readonly curves: readonly [ToneCurve, ToneCurve, ToneCurve];
      /** Matrix from the profile's linear colours to sRGB's, which may exceed 0 to 1. */
      readonly toSrgbLight: Matrix;
    };

const HEADER_BYTES = 128;
const MAX_MAJOR_VERSION = 4;
/** Signature, offset and size of a tag. */
const ENTRY_BYTES = 12;
const MAX_TAGS = 100;
/** Look-up tables, which have precedence over matrix and curves (ICC.1:2022 §9.1). */
const TABLE_TAGS = ['A2B0', 'D2B0'];

/** Matrix from XYZ under D50 to linear sRGB: the inverse of the one in sRGB's profile, which then changes nothing. */
const XYZ_TO_SRGB: Matrix = [
  [3.134112, -1.617392, -0.490633],
  [-0.978787, 1.91628, 0.033455],
  [0.071983, -0.228986, 1.405386],
];

/** Reads a profile of matrix and curves, the usual kind; `undefined` for others. @param kind of the pixels */
export function readMatrixProfile(
  profile: Uint8Array,
  kind: MatrixProfile['kind'],
): MatrixProfile | undefined {
  const space = kind === 'grey' ? 'GRAY' : 'RGB ';
  const isFitting = hasAscii(profile, 16, `${space}XYZ `) && hasAscii(profile, 36, 'acsp');
  const isKnown = (profile[8] ?? 0) <= MAX_MAJOR_VERSION;
  const tags = isFitting && isKnown ? readTags(profile) : undefined;
  if (tags === undefined || TABLE_TAGS.some((tag) => tags.has(tag))) return undefined;
  if (kind === 'grey') {
    const curve = readCurve(tags.get('kTRC'));
    return curve && { kind, curve };
  }
  const channels = ['r', 'g', 'b'] as const;
  const [redCurve, greenCurve, blueCurve] = channels.map((one) => readCurve(tags.get(`${one}TRC`)));
  const [red, green, blue] = channels.map((one) => readXyz(tags.get(`${one}XYZ`)));
  if (!redCurve || !greenCurve || !blueCurve || !red || !green || !blue) return undefined;
  const toSrgb = (row: Row): Row => [dot(row, red), dot(row, green), dot(row, blue)];
  const [one, two, three] = XYZ_TO_SRGB;
  return {
    kind,
    curves: [redCurve, greenCurve, blueCurve],
    toSrgbLight: [toSrgb(one), toSrgb(two), toSrgb(three)],
  };
}

export function isGreyProfile(profile: Uint8Array | undefined): boolean {
  return profile !== undefined && hasAscii(profile, 16, 'GRAY');
}

export function isRgbProfile(profile: Uint8Array): boolean {
  return hasAscii(profile, 16, 'RGB ');
}

/** Returns the data of tags by signature (ICC.1:2022 §7.3); `undefined` if a tag exceeds the profile. */
function readTags(profile: Uint8Array): Map<string, DataView> | undefined {
  const view = new DataView(profile.buffer, profile.byteOffset, profile.byteLength);
  const start = HEADER_BYTES + 4;
  const count = start <= view.byteLength ? view.getUint32(HEADER_BYTES) : 0;
  const end = start + count * ENTRY_BYTES;
  if (count > MAX_TAGS || end > view.byteLength) return undefined;
  const tags = new Map<string, DataView>();
  for (let entry = start; entry < end; entry += ENTRY_BYTES) {
    const signature = Buffer.from(profile.subarray(entry, entry + 4)).toString('latin1');
    const [offset, size] = [view.getUint32(entry + 4), view.getUint32(entry + 8)];
    if (offset + size > view.byteLength) return undefined;
    tags.set(signature, new DataView(profile.buffer, profile.byteOffset + offset, size));
  }
  return tags;
}

function readXyz(tag: DataView | undefined): Row | undefined {
  if (tag === undefined || tag.byteLength < 20 || !isOfType(tag, 'XYZ ')) return undefined;
  return [readFixed(tag, 8), readFixed(tag, 12), readFixed(tag, 16)];
}

function readCurve(tag: DataView | undefined): ToneCurve | undefined {
  if (tag === undefined || tag.byteLength < 12) return undefined;
  if (isOfType(tag, 'curv')) return readTable(tag);
  return isOfType(tag, 'para') ? readFormula(tag) : undefined;
}

/** Reads a `curveType` (ICC.1:2022 §10.6): empty, an exponent, or samples of the curve. */
function readTable(tag: DataView): ToneCurve | undefined {
  const count = tag.getUint32(8);
  if (tag.byteLength < 12 + 2 * count) return undefined;
  if (count === 0) return (sample) => sample;
  if (count === 1) {
    const exponent = tag.getUint16(12) / 256;
    return (sample) => sample ** exponent;
  }
  return (sample) => {
    const position = sample * (count - 1);
    const index = Math.min(Math.floor(position), count - 2);
    const [below, above] = [tag.getUint16(12 + 2 * index), tag.getUint16(14 + 2 * index)];
    return (below + (above - below) * (position - index)) / 0xffff;
  };
}

/** Parameters of each kind of `parametricCurveType`. */
const FORMULA_PARAMETERS = [1, 3, 4, 5, 7];

/** Reads a `parametricCurveType` (ICC.1:2022 §10.18): a power of the sample, and a line below a limit. */
function readFormula(tag: DataView): ToneCurve | undefined {
  const kind = tag.getUint16(8);
  const count = FORMULA_PARAMETERS[kind];
  if (count === undefined || tag.byteLength < 12 + 4 * count) return undefined;
  const parameters = Array.from({ length: count }, (_, index) => readFixed(tag, 12 + 4 * index));
  const [g = 1, a = 1, b = 0, c = 0, d = 0, e = 0, f = 0] = parameters;
  if (kind < 3) return (sample) => (a * sample + b >= 0 ? (a * sample + b) ** g : 0) + c;
  return (sample) => (sample >= d ? (a * sample + b) ** g + e : c * sample + f);
}

function isOfType(tag: DataView, type: string): boolean {
  return hasAscii(new Uint8Array(tag.buffer, tag.byteOffset, tag.byteLength), 0, type);
}

/** Reads an `s15Fixed16Number` (ICC.1:2022 §4.6). */
function readFixed(tag: DataView, at: number): number {
  return tag.getInt32(at) / 65_536;
}

function dot(one: Row, other: Row): number {
  return one[0] * other[0] + one[1] * other[1] + one[2] * other[2];
}
