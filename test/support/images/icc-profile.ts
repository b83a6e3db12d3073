import { join, u32be } from '../../formats/containers.ts';
import { u16be } from './heif-file.ts';

/** How light becomes a sample: the curve from a sample to light, both 0 to 1. */
type TransferCurve = { readonly gamma: number } | 'srgb';

/** An RGB space: chromaticities of its primaries and its white, and its curve. */
interface RgbSpace {
  readonly kind: 'rgb';
  readonly primaries: readonly (readonly [x: number, y: number])[];
  readonly white: readonly [x: number, y: number];
  readonly curve: TransferCurve;
}

interface GreySpace {
  readonly kind: 'grey';
  readonly curve: TransferCurve;
}

/** Inks of which each takes its part of one colour's light, and black of all; the curve is that of what is left. */
interface InkSpace {
  readonly kind: 'cmyk';
  readonly curve: TransferCurve;
}

/** Where profiles connect (ICC.1:2022 §7.2.16), and most displays' white. */
const D50: Vector = [0.9642, 1, 0.8249];
const PROPHOTO_WHITE = [0.3457, 0.3585] as const;
const D65 = [0.3127, 0.329] as const;

/** Colour spaces as their standards define them. */
export const spaces = {
  sRGB: rgb([0.64, 0.33], [0.3, 0.6], [0.15, 0.06], D65, 'srgb'),
  'Display P3': rgb([0.68, 0.32], [0.265, 0.69], [0.15, 0.06], D65, 'srgb'),
  AdobeRGB: rgb([0.64, 0.33], [0.21, 0.71], [0.15, 0.06], D65, { gamma: 563 / 256 }),
  ProPhoto: rgb([0.7347, 0.2653], [0.1596, 0.8404], [0.0366, 0.0001], PROPHOTO_WHITE, {
    gamma: 1.8,
  }),
  'linear Rec. 2020': rgb([0.708, 0.292], [0.17, 0.797], [0.131, 0.046], D65, { gamma: 1 }),
  grey: { kind: 'grey', curve: 'srgb' },
  'grey of gamma 1.8': { kind: 'grey', curve: { gamma: 1.8 } },
  inks: { kind: 'cmyk', curve: { gamma: 2.2 } },
} as const satisfies Record<string, RgbSpace | GreySpace | InkSpace>;

/** One of `spaces`. */
export type SpaceName = keyof typeof spaces;

type GreySpaceName = {
  [Name in SpaceName]: (typeof spaces)[Name]['kind'] extends 'grey' ? Name : never;
}[SpaceName];

type Vector = readonly [number, number, number];
type Matrix = readonly [Vector, Vector, Vector];

/**
 * The sRGB that a colour of a space is, each channel 0 to 255 and not rounded: by the formulas of the
 * standards, in double precision, without a colour library; what lies outside of sRGB is cut off.
 *
 * @param samples three of an RGB space, one of a grey one, four of inks, 0 to 1
 */
export function toSrgb(name: SpaceName, samples: readonly number[]): Vector {
  const space = spaces[name];
  const light =
    space.kind === 'cmyk'
      ? lightOfInks(samples.map((sample) => inkShare(sample, space.curve)))
      : samples.map((sample) => toLight(sample, space.curve));
  const [red = 0, green = red, blue = red] = light;
  const linear =
    space.kind !== 'rgb'
      ? ([red, green, blue] as const)
      : multiply(invert(toXyzD50(spaces.sRGB)), multiply(toXyzD50(space), [red, green, blue]));
  return mapVector(linear, (value) => 255 * fromLight(Math.min(1, Math.max(0, value))));
}

/** Part of the light that some ink takes away. */
function inkShare(sample: number, curve: TransferCurve): number {
  return 1 - toLight(1 - sample, curve);
}

function lightOfInks([cyan = 0, magenta = 0, yellow = 0, black = 0]: readonly number[]): Vector {
  return mapVector([cyan, magenta, yellow], (share) => (1 - share) * (1 - black));
}

/**
 * An ICC profile of a space (ICC.1:2022): a matrix and curves, a curve alone, or of inks tables.
 *
 * @param sizeBytes of the profile, which is filled up with zeros to it
 */
export function createProfile(name: SpaceName, sizeBytes = 1024): Buffer {
  if (name === 'inks') return createTableProfile(name);
  const space = spaces[name];
  const curve = formatCurve(space.curve);
  const tags = [...commonTags];
  if (space.kind === 'grey') {
    tags.push(['kTRC', curve]);
  } else {
    const [x, y, z] = toXyzD50(space);
    (['r', 'g', 'b'] as const).forEach((channel, index) => {
      tags.push([`${channel}XYZ`, formatXyz([x[index] ?? 0, y[index] ?? 0, z[index] ?? 0])]);
      tags.push([`${channel}TRC`, curve]);
    });
  }
  return formatProfile(space.kind === 'grey' ? 'GRAY' : 'RGB ', tags, sizeBytes);
}

/**
 * A profile of tables: curves, a cube of colours, of which RGB has the corners alone, and curves that change nothing.
 */
export function createTableProfile(name: Exclude<SpaceName, GreySpaceName>): Buffer {
  const space = spaces[name];
  const isInk = space.kind === 'cmyk';
  const channels = isInk ? 4 : 3;
  const matrix = toXyzD50(isInk ? spaces.sRGB : space);
  const entries = 1024;
  const share = (value: number): Buffer => u16be(Math.round(0xffff * value));
  const toLinear = isInk ? inkShare : toLight;
  const input = Array.from({ length: entries }, (_, at) =>
    share(toLinear(at / (entries - 1), space.curve)),
  );
  // Light is linear in each channel but not in two inks at once, between whose steps each library goes its own way.
  const steps = isInk ? 9 : 2;
  const cube = Array.from({ length: steps ** channels }, (_, at) => {
    // The last channel changes first.
    const shares = Array.from(
      { length: channels },
      (_, channel) => (Math.floor(at / steps ** (channels - 1 - channel)) % steps) / (steps - 1),
    );
    const [one = 0, two = 0, three = 0] = shares;
    const light = isInk ? lightOfInks(shares) : ([one, two, three] as const);
    return multiply(matrix, light).map((value) => u16be(Math.round(value * 0x8000)));
  });
  const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1].map(s15Fixed16);
  const table = join(
    ...['mft2', u32be(0), channels, 3, steps, 0, ...identity, u16be(entries), u16be(2)],
    ...[...Array.from({ length: channels }, () => input).flat(), ...cube.flat()],
    ...[0, 1, 0, 1, 0, 1].map(share),
  );
  return formatProfile(
    isInk ? 'CMYK' : 'RGB ',
    [...commonTags, ['A2B0', table]],
    isInk ? 50_000 : 8192,
  );
}

/** A profile of some tags, filled up with zeros. */
export function formatProfile(
  colours: string,
  tags: readonly [string, Buffer][],
  size: number,
): Buffer {
  const header = Buffer.alloc(128);
  header.writeUInt32BE(size, 0);
  // Of version 4, black of a printer's tables is that of a reference medium (ICC.1:2022 §6.3.4.3).
  header.writeUInt32BE(colours === 'CMYK' ? 0x0240_0000 : 0x0430_0000, 8);
  const device = colours === 'CMYK' ? 'prtr' : 'mntr';
  header.write(`${device}${colours}XYZ `, 12, 'latin1');
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

function rgb(
  red: readonly [number, number],
  green: readonly [number, number],
  blue: readonly [number, number],
  white: readonly [number, number],
  curve: TransferCurve,
): RgbSpace {
  return { kind: 'rgb', primaries: [red, green, blue], white, curve };
}

function toLight(sample: number, curve: TransferCurve): number {
  if (curve !== 'srgb') return sample ** curve.gamma;
  return sample <= 0.04045 ? sample / 12.92 : ((sample + 0.055) / 1.055) ** 2.4;
}

/** IEC 61966-2-1, the inverse of the above. */
function fromLight(light: number): number {
  return light <= 0.0031308 ? light * 12.92 : 1.055 * light ** (1 / 2.4) - 0.055;
}

function whiteToXyz([x, y]: readonly [number, number]): Vector {
  return [x / y, 1, (1 - x - y) / y];
}

/** From linear samples to XYZ under D50, where profiles connect (ICC.1:2022 annex E: Bradford's adaptation). */
function toXyzD50({ primaries, white }: RgbSpace): Matrix {
  const [red, green, blue] = primaries.map(whiteToXyz) as [Vector, Vector, Vector];
  const columns = transpose([red, green, blue]);
  const scale = multiply(invert(columns), whiteToXyz(white));
  const toXyz = mapMatrix(columns, (row) =>
    mapVector(row, (value, at) => value * (scale[at] ?? 0)),
  );
  const cone: Matrix = [
    [0.8951, 0.2664, -0.1614],
    [-0.7502, 1.7135, 0.0367],
    [0.0389, -0.0685, 1.0296],
  ];
  const from = multiply(cone, whiteToXyz(white));
  const to = multiply(cone, D50);
  const adapted = mapMatrix(cone, (row, at) =>
    mapVector(row, (value) => (value * (to[at] ?? 0)) / (from[at] ?? 1)),
  );
  return multiplyMatrices(invert(cone), multiplyMatrices(adapted, toXyz));
}

function mapVector(vector: Vector, change: (value: number, at: number) => number): Vector {
  return [change(vector[0], 0), change(vector[1], 1), change(vector[2], 2)];
}

function mapMatrix(matrix: Matrix, change: (row: Vector, at: number) => Vector): Matrix {
  return [change(matrix[0], 0), change(matrix[1], 1), change(matrix[2], 2)];
}

function multiply(matrix: Matrix, [x, y, z]: Vector): Vector {
  const sum = (row: Vector): number => row[0] * x + row[1] * y + row[2] * z;
  return [sum(matrix[0]), sum(matrix[1]), sum(matrix[2])];
}

function transpose([one, two, three]: Matrix): Matrix {
  return [
    [one[0], two[0], three[0]],
    [one[1], two[1], three[1]],
    [one[2], two[2], three[2]],
  ];
}

function multiplyMatrices(left: Matrix, right: Matrix): Matrix {
  return transpose(mapMatrix(transpose(right), (column) => multiply(left, column)));
}

function invert(matrix: Matrix): Matrix {
  const [one, two, three] = matrix;
  const cofactors: Matrix = [cross(two, three), cross(three, one), cross(one, two)];
  const determinant =
    one[0] * cofactors[0][0] + one[1] * cofactors[0][1] + one[2] * cofactors[0][2];
  return transpose(mapMatrix(cofactors, (row) => mapVector(row, (value) => value / determinant)));
}

function cross(one: Vector, other: Vector): Vector {
  return [
    one[1] * other[2] - one[2] * other[1],
    one[2] * other[0] - one[0] * other[2],
    one[0] * other[1] - one[1] * other[0],
  ];
}
