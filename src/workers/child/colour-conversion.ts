import type { Metadata, Sharp } from 'sharp';
import {
  isRgbProfile,
  type MatrixProfile,
  readMatrixProfile,
  type ToneCurve,
} from '../../formats/icc-profile.ts';
import { tabulate, toIndex, toSrgb } from './lookup-table.ts';
import { type MapColours, scaleOf, unmultiply } from './picture-to-rgb.ts';
import { type Pixels, toPixels } from './pixels.ts';

const DEEP_BITS = 16;
const DEEP_SAMPLES = 2 ** DEEP_BITS;
const MAX_DEEP = DEEP_SAMPLES - 1;
const MAX_SHALLOW = 255;

/** Maximum differences to sRGB's profile that change no 8-bit sample: in the matrix, and of a sample. */
const LIGHT_TOLERANCE = 0.001;
const SAMPLE_TOLERANCE = 0.5;

type Samples = Uint8Array | Uint16Array;

/** libvips' warnings when it replaces an unusable profile. */
const UNUSABLE_PROFILE =
  /^(corrupt profile|unsupported profile|profile incompatible with image|profile does not support \w+ input intent)$/;

/**
 * Decodes an image and converts it to sRGB where sharp cannot do so exactly: sharp ignores the profile of a grey AVIF,
 * converts deep images with a profile to Display P3, and its gamma ignores sRGB's curve; lcms2 is wrong by up to 20
 * levels where a deep colour exceeds sRGB. lcms2 converts only profiles of look-up tables.
 *
 * @param image opened with `ignoreIcc`
 * @param gamma exponent of the samples' transfer function, which replaces a profile
 * @param isTaggedGrey whether the profile is grey, although the image was decoded to three channels
 * @returns `undefined` without a usable profile
 */
export async function convertPixels(
  image: Sharp,
  { icc, depth, space, bitsPerSample = DEEP_BITS }: Metadata,
  gamma: number | undefined,
  isTaggedGrey: boolean,
): Promise<Pixels<Samples> | undefined> {
  const kind = space === 'grey16' ? 'grey' : 'rgb';
  const isDeep = depth === 'ushort';
  const max = isDeep ? MAX_DEEP : MAX_SHALLOW;
  const toSamples = () => (isDeep ? toDeepPixels(image, kind) : toPixels(image));
  if (gamma !== undefined) {
    const pixels = await toSamples();
    const table = tabulateSamples((fraction) => toSrgb(fraction ** (1 / gamma)), max);
    mapColourChannels(pixels, table);
    return pixels;
  }
  if (icc === undefined) return undefined;
  const profileKind = isTaggedGrey ? 'grey' : kind;
  const profile = readMatrixProfile(icc, profileKind);
  if (profile === undefined) return await convertByTable(image, kind);
  // libvips shifts 10-bit and 12-bit samples to the left.
  const white = isDeep ? DEEP_SAMPLES - 2 ** (DEEP_BITS - bitsPerSample) : max;
  const pixels = await toSamples();
  if (profileKind === 'grey' && !isGrey(pixels)) return undefined;
  // Deep samples, as `convertColours` needs: only grey AVIFs have 8-bit samples here.
  if (profile.kind === 'rgb') convertColours(pixels, profile, white);
  else
    mapColourChannels(
      pixels,
      tabulateSamples((light) => toSrgb(profile.curve(light)), max, white),
    );
  stretchAlpha(pixels, max, white);
  return pixels;
}

interface DecodedSamples extends Pixels<Samples> {
  /** Bits of a sample before libvips shifted it to the left. */
  readonly bits: number;
}

export async function decodeSamples(
  image: Sharp,
  { depth, bitsPerSample = DEEP_BITS }: Metadata,
): Promise<DecodedSamples> {
  if (depth === 'ushort') return { ...(await toDeepPixels(image, 'rgb')), bits: bitsPerSample };
  return { ...(await toPixels(image.toColourspace('srgb'))), bits: 8 };
}

export interface SampleCoding {
  readonly isLimitedGrey?: boolean;
  readonly isLimitedAlpha?: boolean;
  readonly isPremultiplied?: boolean;
  readonly mapColours?: MapColours | undefined;
  /** Profile of the converted samples; omit for sRGB. */
  readonly profile?: Uint8Array | undefined;
}

/** Converts samples to 8-bit sRGB with straight alpha; overwrites 8-bit samples in place. */
export function toSrgbPixels(
  { data, widthPx, heightPx, channels, bits }: DecodedSamples,
  { isLimitedGrey, isLimitedAlpha, isPremultiplied, mapColours }: SampleCoding,
): Pixels {
  if (channels < 3) throw new Error(`Expected red, green and blue but found ${channels} channels`);
  const isDeep = data instanceof Uint16Array;
  const samples = isDeep
    ? new Uint8ClampedArray(data.length)
    : new Uint8ClampedArray(data.buffer, data.byteOffset, data.length);
  const unit = isDeep ? 2 ** (DEEP_BITS - bits) : 1;
  const colour = scaleOf({ depth: bits, isFullRange: isLimitedGrey !== true });
  const alpha = scaleOf({ depth: bits, isFullRange: isLimitedAlpha !== true });
  const [offset, factor] = [colour.lumaOffset * unit, colour.lumaFactor / unit];
  const [alphaOffset, alphaFactor] = [alpha.lumaOffset * unit, alpha.lumaFactor / unit];
  const row = new Float32Array(widthPx * 3);
  const opacities = new Float32Array(widthPx).fill(MAX_SHALLOW);
  for (let start = 0; start < data.length; start += widthPx * channels) {
    for (let column = 0, at = start; column < widthPx; column += 1, at += channels) {
      row[column * 3] = (data[at] - offset) * factor;
      row[column * 3 + 1] = (data[at + 1] - offset) * factor;
      row[column * 3 + 2] = (data[at + 2] - offset) * factor;
      if (channels === 4) opacities[column] = (data[at + 3] - alphaOffset) * alphaFactor;
    }
    if (isPremultiplied) unmultiply(row, opacities);
    mapColours?.(row);
    for (let column = 0, at = start; column < widthPx; column += 1, at += channels) {
      samples[at] = row[column * 3];
      samples[at + 1] = row[column * 3 + 1];
      samples[at + 2] = row[column * 3 + 2];
      if (channels === 4) samples[at + 3] = opacities[column];
    }
  }
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.length);
  return { data: bytes, widthPx, heightPx, channels };
}

/** Whether an 8-bit image has sRGB's profile, to save lcms2's preparation, which takes as long as a small picture. */
export function isSrgb({ space, icc }: Metadata): boolean {
  const profile = space === 'srgb' && icc ? readMatrixProfile(icc, 'rgb') : undefined;
  if (profile?.kind !== 'rgb') return false;
  const isSameLight = profile.toSrgbLight.every((entries, row) =>
    entries.every((entry, column) => Math.abs(entry - (row === column ? 1 : 0)) <= LIGHT_TOLERANCE),
  );
  const isSameSample = (curve: ToneCurve, sample: number): boolean =>
    Math.abs(toSrgb(curve(sample / MAX_SHALLOW)) * MAX_SHALLOW - sample) <= SAMPLE_TOLERANCE;
  const samples = Array.from({ length: MAX_SHALLOW + 1 }, (_, sample) => sample);
  return (
    isSameLight &&
    profile.curves.every((curve) => samples.every((sample) => isSameSample(curve, sample)))
  );
}

/** Whether a profile is missing or matches the samples: libvips would also apply an XYZ or Lab profile to RGB. */
export function hasCompatibleProfile({ space, icc }: Metadata): boolean {
  const isRgb = space === 'srgb' || space === 'rgb16';
  return !isRgb || icc === undefined || isRgbProfile(icc);
}

function isGrey({ data, channels }: Pixels<Samples>): boolean {
  if (colourChannels(channels) === 1) return true;
  for (let at = 0; at < data.length; at += channels) {
    if (data[at] !== data[at + 1] || data[at] !== data[at + 2]) return false;
  }
  return true;
}

async function convertByTable(
  image: Sharp,
  kind: MatrixProfile['kind'],
): Promise<Pixels<Uint16Array> | undefined> {
  const warnings: string[] = [];
  image.withIccProfile('srgb', { attach: false });
  image.on('warning', (warning: string) => warnings.push(warning));
  const pixels = await toDeepPixels(image, kind);
  return warnings.some((warning) => UNUSABLE_PROFILE.test(warning)) ? undefined : pixels;
}

async function toDeepPixels(
  image: Sharp,
  kind: MatrixProfile['kind'],
): Promise<Pixels<Uint16Array>> {
  const { data, info } = await image
    .toColourspace(`${kind}16`)
    .raw({ depth: 'ushort' })
    .toBuffer({ resolveWithObject: true });
  return {
    data: new Uint16Array(data.buffer, data.byteOffset, data.length / 2),
    widthPx: info.width,
    heightPx: info.height,
    channels: info.channels,
  };
}

/** @param opaque sample of full opacity, which becomes `max` */
function stretchAlpha({ data, channels }: Pixels<Samples>, max: number, opaque: number): void {
  const alpha = colourChannels(channels);
  if (alpha === channels || opaque === max) return;
  const stretched = tabulateSamples((fraction) => fraction, max, opaque);
  mapChannel(data, alpha, channels, stretched);
}

function mapColourChannels({ data, channels }: Pixels<Samples>, table: Uint16Array): void {
  for (let channel = 0; channel < colourChannels(channels); channel += 1) {
    mapChannel(data, channel, channels, table);
  }
}

function colourChannels(channels: Pixels['channels']): 1 | 3 {
  return channels < 3 ? 1 : 3;
}

function mapChannel(data: Samples, first: number, step: number, table: Uint16Array): void {
  for (let at = first; at < data.length; at += step) data[at] = table[data[at]];
}

function convertColours(
  { data, channels }: Pixels<Samples>,
  { curves, toSrgbLight }: Extract<MatrixProfile, { kind: 'rgb' }>,
  white: number,
): void {
  const [reds, greens, blues] = curves.map((curve) => {
    const clamp = (fraction: number): number => Math.min(1, Math.max(0, curve(fraction)));
    return tabulate(clamp, MAX_DEEP, white);
  });
  const samples = tabulateSamples(toSrgb, MAX_DEEP);
  const sampleOf = (light: number): number => samples[toIndex(light * MAX_DEEP, MAX_DEEP)];
  // Destructured here, since the loop would otherwise take twice as long.
  const [[redOfRed, redOfGreen, redOfBlue], toGreen, toBlue] = toSrgbLight;
  const [greenOfRed, greenOfGreen, greenOfBlue] = toGreen;
  const [blueOfRed, blueOfGreen, blueOfBlue] = toBlue;
  for (let at = 0; at < data.length; at += channels) {
    const red = reds[data[at]];
    const green = greens[data[at + 1]];
    const blue = blues[data[at + 2]];
    data[at] = sampleOf(redOfRed * red + redOfGreen * green + redOfBlue * blue);
    data[at + 1] = sampleOf(greenOfRed * red + greenOfGreen * green + greenOfBlue * blue);
    data[at + 2] = sampleOf(blueOfRed * red + blueOfGreen * green + blueOfBlue * blue);
  }
}

/** @param white sample for which `compute` receives 1 */
function tabulateSamples(
  compute: (fraction: number) => number,
  max: number,
  white = max,
): Uint16Array {
  return Uint16Array.from(tabulate(compute, max, white), (value) => toIndex(value * max, max));
}
