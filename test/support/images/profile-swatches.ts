import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import { afterIhdr, join, pngChunk } from '../../formats/containers.ts';
import { useTemporaryFolder } from '../temporary-folder.ts';
import { createProfile, type SpaceName, spaces, toSrgb } from './icc-profile.ts';

/** Largest difference of a channel to what the standards say, in levels of 255. */
export const TOLERANCE = 2;

/** Swatches of one colour each, which neither a codec nor a filter mixes where they are looked at. */
const SWATCH_PX = 16;
const COLUMNS = 12;
/** Edge of a file of swatches. */
export const EDGE_PX = COLUMNS * SWATCH_PX;

/** Corners, edges and middle of the cube of colours, dark greys, and 104 colours of all kinds. */
const swatches = Array.from({ length: COLUMNS ** 2 }, (_, index) => {
  if (index < 27) return [index % 3, Math.floor(index / 3) % 3, Math.floor(index / 9)].map(half);
  if (index < 40) return [1, 1, 1].map((one) => (one * (index - 26)) / 50);
  return [0.618034, 0.7548777, 0.8191725].map((step) => (index * step) % 1);
});

function half(value: number): number {
  return value / 2;
}

type Kind = 'rgb' | 'grey';

/** How a file is made of an image of 16 bits; what is named after it is its colours, their bits, and alpha. */
const forms: readonly [
  name: string,
  kind: Kind,
  hasAlpha: boolean,
  encode: (image: Sharp) => Sharp | Promise<Buffer>,
][] = [
  ['PNG of 8 bits', 'rgb', false, (image) => image.toColourspace('srgb').png()],
  ['PNG of 8 bits with alpha', 'rgb', true, (image) => image.toColourspace('srgb').png()],
  [
    'PNG with a palette',
    'rgb',
    false,
    (image) => image.toColourspace('srgb').png({ palette: true }),
  ],
  ['PNG of 16 bits', 'rgb', false, (image) => image.toColourspace('rgb16').png()],
  ['PNG of 16 bits with alpha', 'rgb', true, (image) => image.toColourspace('rgb16').png()],
  ['AVIF of 8 bits', 'rgb', false, (image) => avif(image, 8)],
  ['AVIF of 10 bits', 'rgb', false, (image) => avif(image, 10)],
  ['AVIF of 10 bits with alpha', 'rgb', true, (image) => avif(image, 10)],
  ['AVIF of 12 bits', 'rgb', false, (image) => avif(image, 12)],
  [
    'WebP',
    'rgb',
    false,
    (image) => image.toColourspace('srgb').webp({ lossless: true, effort: 0 }),
  ],
  ['JPEG', 'rgb', false, (image) => image.toColourspace('srgb').jpeg(finest)],
  ['grey PNG of 8 bits', 'grey', false, (image) => image.toColourspace('b-w').png()],
  ['grey PNG of 8 bits with alpha', 'grey', true, (image) => image.toColourspace('b-w').png()],
  ['grey PNG of 16 bits', 'grey', false, (image) => image.toColourspace('grey16').png()],
  ['grey PNG of 16 bits with alpha', 'grey', true, (image) => image.toColourspace('grey16').png()],
  ['grey JPEG', 'grey', false, (image) => image.toColourspace('b-w').jpeg(finest)],
  ['grey AVIF of 8 bits', 'grey', false, (image) => greyAvif(image, 8)],
  ['grey AVIF of 10 bits with alpha', 'grey', true, (image) => greyAvif(image, 10)],
];

const finest = { quality: 100, chromaSubsampling: '4:4:4' } as const;

function avif(image: Sharp, bitdepth: 8 | 10 | 12): Sharp {
  const colourspace = bitdepth === 8 ? 'srgb' : 'rgb16';
  return image
    .toColourspace(colourspace)
    .avif({ lossless: true, effort: 0, chromaSubsampling: '4:4:4', bitdepth });
}

/** libavif's encoder; sharp makes three channels of grey. */
export const hasAvifenc = spawnSync('avifenc', ['--version']).error === undefined;

async function greyAvif(image: Sharp, bits: 8 | 10): Promise<Buffer> {
  const { path } = await useTemporaryFolder();
  const [png, avifFile] = [joinPath(path, 'grey.png'), joinPath(path, 'grey.avif')];
  writeFileSync(png, await image.toColourspace('grey16').png().toBuffer());
  execFileSync('avifenc', ['--yuv', '400', '--depth', `${bits}`, '--lossless', png, avifFile], {
    stdio: 'pipe',
  });
  return readFileSync(avifFile);
}

const spaceNames = Object.keys(spaces) as SpaceName[];

/** A form with a profile of a space, or without one. */
export interface ProfileRow {
  readonly form: string;
  readonly kind: Kind;
  readonly hasAlpha: boolean;
  readonly space: SpaceName | undefined;
  readonly draw: () => Promise<Buffer>;
}

/** Every combination that a format can hold. */
export const profileRows: readonly ProfileRow[] = forms.flatMap(([form, kind, hasAlpha]) =>
  [undefined, ...spaceNames.filter((name) => spaces[name].kind === kind)].map((space) => ({
    form,
    kind,
    hasAlpha,
    space,
    draw: () => drawSwatches(form, space && createProfile(space)),
  })),
);

/** A file of the swatches; alpha falls from left to right, to three quarters. */
export async function drawSwatches(name: string, profile: Uint8Array | undefined): Promise<Buffer> {
  const form = forms.find(([other]) => other === name);
  if (form === undefined) throw new Error(`Expected a form but received ${name}`);
  const [, kind, hasAlpha, encode] = form;
  const colours = kind === 'grey' ? 1 : 3;
  const channels = (colours + (hasAlpha ? 1 : 0)) as 1 | 2 | 3 | 4;
  const samples = new Uint16Array(EDGE_PX * EDGE_PX * channels);
  for (let pixel = 0; pixel < EDGE_PX * EDGE_PX; pixel += 1) {
    const [x, y] = [pixel % EDGE_PX, Math.floor(pixel / EDGE_PX)];
    const [column, row] = [Math.floor(x / SWATCH_PX), Math.floor(y / SWATCH_PX)];
    const swatch = swatches[row * COLUMNS + column] ?? [];
    const alpha = 1 - column / COLUMNS / 4;
    [...swatch.slice(0, colours), ...(hasAlpha ? [alpha] : [])].forEach((value, channel) => {
      samples[pixel * channels + channel] = Math.round(value * 0xffff);
    });
  }
  const png = await sharp(samples, { raw: { width: EDGE_PX, height: EDGE_PX, channels } })
    .toColourspace(kind === 'grey' ? 'grey16' : 'rgb16')
    .png({ compressionLevel: 1 })
    .toBuffer();
  const tagged = profile === undefined ? png : withProfile(png, profile);
  const encoded = await encode(sharp(tagged).keepIccProfile());
  return Buffer.isBuffer(encoded) ? encoded : await encoded.toBuffer();
}

/** A PNG with a profile. */
export function withProfile(png: Uint8Array, profile: Uint8Array): Buffer {
  return afterIhdr(png, pngChunk('iCCP', join('x\0\0', deflateSync(profile))));
}

/** Samples in the middle of each swatch, 0 to 1, as the file has them, whatever its profile. */
async function readStored(file: Uint8Array, kind: Kind): Promise<number[][]> {
  const { depth, bitsPerSample = 8 } = await sharp(file).metadata();
  const isDeep = depth === 'ushort';
  const image = sharp(file, { ignoreIcc: true });
  const { data, info } = await image
    .toColourspace(isDeep ? `${kind}16` : 'srgb')
    .raw({ depth: isDeep ? 'ushort' : 'uchar' })
    .toBuffer({ resolveWithObject: true });
  const samples = isDeep ? new Uint16Array(data.buffer, data.byteOffset, data.length / 2) : data;
  // libvips shifts 10 and 12 bits to the left.
  const most = isDeep ? 2 ** 16 - 2 ** (16 - bitsPerSample) : 255;
  return readMiddles(samples, info.width, info.channels).map((middle) =>
    middle.map((sample) => sample / most),
  );
}

/** Samples in the middle of each swatch. */
export function readMiddles(
  samples: ArrayLike<number>,
  widthPx: number,
  channels: number,
): number[][] {
  const swatchPx = widthPx / COLUMNS;
  return swatches.map((_, index) => {
    const x = Math.floor(((index % COLUMNS) + 0.5) * swatchPx);
    const y = Math.floor((Math.floor(index / COLUMNS) + 0.5) * swatchPx);
    const at = (y * widthPx + x) * channels;
    return Array.from({ length: channels }, (_, channel) => samples[at + channel] ?? 0);
  });
}

/** Colours, and alpha where there is some, that a rendering shows, 0 to 255. */
export async function readShown(rendering: Uint8Array): Promise<number[][]> {
  const { data, info } = await sharp(rendering)
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true });
  return readMiddles(data, info.width, info.channels);
}

/** Colours that the standards say should be shown of a file with a profile of a space, 0 to 255. */
export async function readExpected(
  file: Uint8Array,
  { kind, space }: Pick<ProfileRow, 'kind' | 'space'>,
): Promise<number[][]> {
  const stored = await readStored(file, kind);
  return stored.map((samples) => {
    const alpha = samples.slice(samples.length - ((samples.length + 1) % 2));
    const colours = samples.slice(0, { grey: 1, rgb: 3 }[kind]);
    const plain = kind === 'grey' ? [0, 0, 0].map(() => colours[0] ?? 0) : colours;
    const shown = space === undefined ? plain.map((value) => 255 * value) : toSrgb(space, colours);
    return [...shown, ...alpha.map((value) => 255 * value)];
  });
}

/** Between colours of swatches, in levels. */
export function largestDifference(
  actual: readonly number[][],
  expected: readonly number[][],
): number {
  return Math.max(
    ...expected.flatMap((colour, index) =>
      colour.map((value, channel) => Math.abs(value - (actual[index]?.[channel] ?? 0))),
    ),
  );
}
