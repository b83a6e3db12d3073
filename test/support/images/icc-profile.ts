import { join, u32be } from '../../formats/containers.ts';
import { u16be } from './heif-file.ts';

/** How light becomes a sample: the curve from a sample to light, both 0 to 1. */
type TransferCurve = { readonly gamma: number } | 'srgb';

/** An RGB space: what its red, green and blue are in XYZ under D50, and its curve. */
interface RgbSpace {
  readonly kind: 'rgb';
  readonly toXyz: Matrix;
  readonly curve: TransferCurve;
}

interface GreySpace {
  readonly kind: 'grey';
  readonly curve: TransferCurve;
}

/** Where profiles connect (ICC.1:2022 §7.2.16), and most displays' white. */
const D50: Vector = [0.9642, 1, 0.8249];

/**
 * Colour spaces as their standards define them. Matrices are of the primaries and the white that these name, adapted
 * to D50 by Bradford's matrix (ICC.1:2022 annex E), as in the profiles that are published of them.
 */
export const spaces = {
  sRGB: rgb(
    [0.436041, 0.385113, 0.143046],
    [0.222485, 0.716905, 0.06061],
    [0.01392, 0.097067, 0.713913],
    'srgb',
  ),
  AdobeRGB: rgb(
    [0.609741, 0.205273, 0.149187],
    [0.311113, 0.625675, 0.063212],
    [0.019465, 0.060874, 0.74456],
    { gamma: 563 / 256 },
  ),
  grey: { kind: 'grey', curve: 'srgb' },
  'grey of gamma 1.8': { kind: 'grey', curve: { gamma: 1.8 } },
} as const satisfies Record<string, RgbSpace | GreySpace>;

/** One of `spaces`. */
export type SpaceName = keyof typeof spaces;

/** From XYZ under D50 to linear sRGB: the inverse of its matrix above. */
const XYZ_TO_SRGB: Matrix = [
  [3.134186, -1.617209, -0.490694],
  [-0.978749, 1.91613, 0.033433],
  [0.071964, -0.228994, 1.405754],
];

type Vector = readonly [number, number, number];
type Matrix = readonly [Vector, Vector, Vector];

/**
 * The sRGB that a colour of a space is, each channel 0 to 255 and not rounded: by the formulas of the
 * standards, in double precision, without a colour library; what lies outside of sRGB is cut off.
 *
 * @param samples three of an RGB space, one of a grey one, 0 to 1
 */
export function toSrgb(name: SpaceName, samples: readonly number[]): Vector {
  const space = spaces[name];
  const light = samples.map((sample) => toLight(sample, space.curve));
  const [red = 0, green = red, blue = red] = light;
  const linear =
    space.kind !== 'rgb'
      ? ([red, green, blue] as const)
      : multiply(XYZ_TO_SRGB, multiply(space.toXyz, [red, green, blue]));
  const toLevel = (value: number): number => 255 * fromLight(Math.min(1, Math.max(0, value)));
  return [toLevel(linear[0]), toLevel(linear[1]), toLevel(linear[2])];
}

/**
 * An ICC profile of a space (ICC.1:2022): a matrix and curves, or a curve alone.
 *
 * @param sizeBytes of the profile, which is filled up with zeros to it
 */
export function createProfile(name: SpaceName, sizeBytes = 1024): Buffer {
  const space = spaces[name];
  const curve = formatCurve(space.curve);
  const tags = [...commonTags];
  if (space.kind === 'grey') {
    tags.push(['kTRC', curve]);
  } else {
    const [x, y, z] = space.toXyz;
    (['r', 'g', 'b'] as const).forEach((channel, index) => {
      tags.push([`${channel}XYZ`, formatXyz([x[index] ?? 0, y[index] ?? 0, z[index] ?? 0])]);
      tags.push([`${channel}TRC`, curve]);
    });
  }
  return formatProfile(space.kind === 'grey' ? 'GRAY' : 'RGB ', tags, sizeBytes);
}

/** A profile of tables: curves, a cube of colours that has the corners alone, and curves that change nothing. */
export function createTableProfile(name: 'sRGB' | 'AdobeRGB'): Buffer {
  const { toXyz, curve } = spaces[name];
  const entries = 1024;
  const share = (value: number): Buffer => u16be(Math.round(0xffff * value));
  const input = Array.from({ length: entries }, (_, at) =>
    share(toLight(at / (entries - 1), curve)),
  );
  // The last channel changes first.
  const cube = Array.from({ length: 8 }, (_, at) =>
    multiply(toXyz, [at >> 2, (at >> 1) & 1, at & 1]).map((value) =>
      u16be(Math.round(value * 0x8000)),
    ),
  );
  const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1].map(s15Fixed16);
  const table = join(
    ...['mft2', u32be(0), 3, 3, 2, 0, ...identity, u16be(entries), u16be(2)],
    ...[...input, ...input, ...input, ...cube.flat()],
    ...[0, 1, 0, 1, 0, 1].map(share),
  );
  return formatProfile('RGB ', [...commonTags, ['A2B0', table]], 8192);
}

/** A profile of some tags, filled up with zeros. */
export function formatProfile(
  colours: string,
  tags: readonly [string, Buffer][],
  size: number,
): Buffer {
  const header = Buffer.alloc(128);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(0x0430_0000, 8);
  header.write(`mntr${colours}XYZ `, 12, 'latin1');
  header.write('acsp', 36, 'latin1');
  formatXyz(D50).copy(header, 68, 8);
  let offset = header.length + 4 + 12 * tags.length;
  const table = tags.map(([tag, data]) => {
    const row = join(tag, u32be(offset), u32be(data.length));
    offset += data.length;
    return row;
  });
  const profile = join(header, u32be(tags.length), ...table, ...tags.map(([, data]) => data));
  return join(profile, Buffer.alloc(size - profile.length));
}

const name = join('mluc', u32be(0), u32be(1), u32be(12), 'enUS', u32be(2), u32be(28), '\0x\0\0');

/** Tags that all have. */
const commonTags: readonly [string, Buffer][] = [
  ['desc', name],
  ['cprt', name],
  ['wtpt', formatXyz(D50)],
];

/** `parametricCurveType` (ICC.1:2022 §10.18): a power, or sRGB's of IEC 61966-2-1. */
function formatCurve(curve: TransferCurve): Buffer {
  const parameters =
    curve === 'srgb' ? [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045] : [curve.gamma];
  const kind = curve === 'srgb' ? 3 : 0;
  return join('para', u32be(0), 0, kind, 0, 0, ...parameters.map(s15Fixed16));
}

function formatXyz(xyz: Vector): Buffer {
  return join('XYZ ', u32be(0), ...xyz.map(s15Fixed16));
}

function s15Fixed16(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Math.round(value * 65_536));
  return bytes;
}

function rgb(x: Vector, y: Vector, z: Vector, curve: TransferCurve): RgbSpace {
  return { kind: 'rgb', toXyz: [x, y, z], curve };
}

function toLight(sample: number, curve: TransferCurve): number {
  if (curve !== 'srgb') return sample ** curve.gamma;
  return sample <= 0.04045 ? sample / 12.92 : ((sample + 0.055) / 1.055) ** 2.4;
}

/** IEC 61966-2-1, the inverse of the above. */
function fromLight(light: number): number {
  return light <= 0.0031308 ? light * 12.92 : 1.055 * light ** (1 / 2.4) - 0.055;
}

function multiply(matrix: Matrix, [x, y, z]: Vector): Vector {
  const sum = (row: Vector): number => row[0] * x + row[1] * y + row[2] * z;
  return [sum(matrix[0]), sum(matrix[1]), sum(matrix[2])];
}
