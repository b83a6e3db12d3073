/**
 * Renders originals of every depth and format with every profile through the service, and compares the colours
 * with what the standards say, computed in double precision without a colour library.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import { expect, test } from 'vitest';
import { afterIhdr, afterSoi, join, jpegSegment, pngChunk, u32be } from '../formats/containers.ts';
import {
  createProfile,
  createTableProfile,
  type SpaceName,
  spaces,
  toSrgb,
} from '../support/images/icc-profile.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { shareTestApp } from '../support/test-app.ts';

/** Largest difference of a channel to what the standards say, in levels of 255. */
export const TOLERANCE = 2;

/** lcms2 goes by a coarser table than the profile's own, and by another one for each depth. */
const TABLE_TOLERANCE = 8;

/** Between the steps of a table of inks, which mix other than steps do. */
const INK_TOLERANCE = 4;

/** Of 8 bits that were multiplied by their alpha, scaled, and divided by it. */
const SCALED_ALPHA_TOLERANCE = 3;

/** Swatches of one colour each, which neither a codec nor a filter mixes where they are looked at. */
const SWATCH_PX = 16;
const COLUMNS = 12;
const EDGE_PX = COLUMNS * SWATCH_PX;

/** Corners, edges and middle of the cube of colours, dark greys, and 104 colours of all kinds. */
const swatches = Array.from({ length: COLUMNS ** 2 }, (_, index) => {
  if (index < 27) return [index % 3, Math.floor(index / 3) % 3, Math.floor(index / 9)].map(half);
  if (index < 40) return [1, 1, 1].map((one) => (one * (index - 26)) / 50);
  return [0.618034, 0.7548777, 0.8191725].map((step) => (index * step) % 1);
});

function half(value: number): number {
  return value / 2;
}

type Kind = 'rgb' | 'grey' | 'cmyk';

/** How a file is made of an image of 16 bits; what is named after it is its colours, their bits, and alpha. */
const forms: readonly [
  name: string,
  kind: Kind,
  hasAlpha: boolean,
  encode: (image: Sharp, profile: Uint8Array | undefined) => Sharp | Promise<Buffer>,
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
  ['CMYK JPEG', 'cmyk', false, cmykJpeg],
];

const finest = { quality: 100, chromaSubsampling: '4:4:4' } as const;

function avif(image: Sharp, bitdepth: 8 | 10 | 12): Sharp {
  const colourspace = bitdepth === 8 ? 'srgb' : 'rgb16';
  return image
    .toColourspace(colourspace)
    .avif({ lossless: true, effort: 0, chromaSubsampling: '4:4:4', bitdepth });
}

/** libavif's encoder; sharp makes three channels of grey. */
const hasAvifenc = spawnSync('avifenc', ['--version']).error === undefined;

async function greyAvif(image: Sharp, bits: 8 | 10): Promise<Buffer> {
  const { path } = await useTemporaryFolder();
  const [png, avifFile] = [joinPath(path, 'grey.png'), joinPath(path, 'grey.avif')];
  writeFileSync(png, await image.toColourspace('grey16').png().toBuffer());
  execFileSync('avifenc', ['--yuv', '400', '--depth', `${bits}`, '--lossless', png, avifFile], {
    stdio: 'pipe',
  });
  return readFileSync(avifFile);
}

/** The red, green and blue of the swatches become inks, by libvips' own profile, which is not attached. */
async function cmykJpeg(image: Sharp, profile: Uint8Array | undefined): Promise<Buffer> {
  const untagged = sharp(await image.png().toBuffer());
  const jpeg = await untagged.toColourspace('cmyk').jpeg(finest).toBuffer();
  return profile === undefined
    ? jpeg
    : afterSoi(jpeg, jpegSegment(0xe2, join('ICC_PROFILE\0', 1, 1, profile)));
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
export const profileRows: readonly ProfileRow[] = forms.flatMap(([form, kind, hasAlpha, encode]) =>
  // What inks look like without a profile, nothing says.
  [
    ...(kind === 'cmyk' ? [] : [undefined]),
    ...spaceNames.filter((name) => spaces[name].kind === kind),
  ].map((space) => ({
    form,
    kind,
    hasAlpha,
    space,
    draw: () => draw({ kind, hasAlpha, encode, profile: space && createProfile(space) }),
  })),
);

const unusable = {
  'for grey': createProfile('grey'),
  'for CMYK': patched('CMYK', 16),
  'without a signature': patched('XXXX', 36),
  'of an unknown version': patched('\x63', 8),
  'without curves': withoutTags('TRC'),
  'without primaries': withoutTags('XYZ'),
  'of thousands of tags': patched('\0\0\xff\xff', 128),
  'that is cut off': createProfile('AdobeRGB').subarray(0, 300),
  'that is text': Buffer.from('no profile at all, but a text of some length. '.repeat(20)),
};

/** A form with a profile that cannot be used. */
export interface UnusableRow {
  readonly form: string;
  readonly what: string;
  readonly profile: Uint8Array;
}

/** Whether a row is one that `npm test` takes: of each depth with a profile that shows a mistake. */
export function isShortProfileRow({ form, space }: ProfileRow): boolean {
  const isShortForm = ['JPEG', 'PNG of 16 bits', 'AVIF of 10 bits'].includes(form);
  const isGreyForm = form === 'grey PNG of 16 bits';
  return isGreyForm ? space === 'grey of gamma 1.8' : isShortForm && space === 'AdobeRGB';
}

/** Every such profile in forms of 8 bits and of more. */
export const unusableRows: readonly UnusableRow[] = Object.entries(unusable).flatMap(
  ([what, profile]) =>
    ['PNG of 8 bits', 'PNG of 16 bits', 'AVIF of 8 bits', 'AVIF of 12 bits', 'JPEG'].map(
      (form) => ({ what, profile, form }),
    ),
);

interface Drawing {
  readonly kind: Kind;
  readonly hasAlpha: boolean;
  readonly encode: (typeof forms)[number][3];
  readonly profile: Uint8Array | undefined;
}

/** A file of the swatches; alpha falls from left to right, to three quarters. */
async function draw({ kind, hasAlpha, encode, profile }: Drawing): Promise<Buffer> {
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
  const isTagged = profile !== undefined && kind !== 'cmyk';
  const encoded = await encode(
    sharp(isTagged ? withProfile(png, profile) : png).keepIccProfile(),
    profile,
  );
  return Buffer.isBuffer(encoded) ? encoded : await encoded.toBuffer();
}

function formOf(name: string): (typeof forms)[number] {
  const form = forms.find(([other]) => other === name);
  if (form === undefined) throw new Error(`Expected a form but received ${name}`);
  return form;
}

/** A profile of AdobeRGB with other bytes at one place. */
function patched(text: string, at: number): Buffer {
  const profile = createProfile('AdobeRGB');
  profile.write(text, at, 'latin1');
  return profile;
}

/** The same without the tags whose names end so. */
function withoutTags(ending: string): Buffer {
  const profile = createProfile('AdobeRGB');
  for (const channel of ['r', 'g', 'b']) {
    profile.write('none', profile.indexOf(`${channel}${ending}`), 'latin1');
  }
  return profile;
}

/** The file with other bytes, of the same length or less, in the place of some. */
function replace(file: Buffer, bytes: Uint8Array, others: Uint8Array): Buffer {
  const at = file.indexOf(bytes);
  if (at < 0) throw new Error('Expected the profile in the file but found none');
  const changed = Buffer.from(file).fill(0, at, at + bytes.length);
  changed.set(others, at);
  return changed;
}

function withProfile(png: Uint8Array, profile: Uint8Array): Buffer {
  return afterIhdr(png, pngChunk('iCCP', join('x\0\0', deflateSync(profile))));
}

/** Samples in the middle of each swatch, 0 to 1, as the file has them, whatever its profile. */
async function readStored(file: Uint8Array, kind: Kind): Promise<number[][]> {
  const { depth, bitsPerSample = 8 } = await sharp(file).metadata();
  const isDeep = depth === 'ushort';
  const image = sharp(file, { ignoreIcc: true });
  if (kind === 'cmyk') image.pipelineColourspace('cmyk');
  const shallow = kind === 'cmyk' ? 'cmyk' : 'srgb';
  const { data, info } = await image
    .toColourspace(isDeep ? `${kind}16` : shallow)
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

/** What the standards say that should be shown of samples as they are stored. */
function expectedOf(stored: readonly number[], kind: Kind, space: SpaceName | undefined): number[] {
  const alpha = kind === 'cmyk' ? [] : stored.slice(stored.length - ((stored.length + 1) % 2));
  const colours = stored.slice(0, { grey: 1, rgb: 3, cmyk: 4 }[kind]);
  const plain = kind === 'grey' ? [0, 0, 0].map(() => colours[0] ?? 0) : colours;
  const shown = space === undefined ? plain.map((value) => 255 * value) : toSrgb(space, colours);
  return [...shown, ...alpha.map((value) => 255 * value)];
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

/** Tests what is shown of files with profiles, through the service. */
export function describeProfiles(
  rows: readonly ProfileRow[],
  unusableOnes: readonly UnusableRow[],
): void {
  const app = shareTestApp();

  const render = async (original: Uint8Array, query: string): Promise<number[][]> => {
    const { statusCode, rawPayload } = await app.serve(original, `/attachments/1/{id}/x${query}`);
    expect(statusCode).toBe(200);
    return await readShown(rawPayload);
  };

  test.for(rows)('colours of $space in a $form', async (row, { skip }) => {
    const { form, kind, hasAlpha, space, draw } = row;
    skip(form.startsWith('grey AVIF') && !hasAvifenc, 'avifenc is not installed');
    const original = await draw();
    const stored = await readStored(original, kind);
    const expected = stored.map((colour) => expectedOf(colour, kind, space));
    const scaled = hasAlpha ? SCALED_ALPHA_TOLERANCE : TOLERANCE;
    const exact = kind === 'cmyk' ? INK_TOLERANCE : TOLERANCE;
    for (const [query, tolerance] of [
      ['?format=webp', exact],
      [`?format=png&width=${EDGE_PX / 2}`, Math.max(exact, scaled)],
    ] as const) {
      const shown = await render(original, query);
      expect(largestDifference(shown, expected), query).toBeLessThanOrEqual(tolerance);
    }
  });

  test.each(unusableOnes)('a profile $what changes no $form', async ({ profile, form }) => {
    const [, kind, hasAlpha, encode] = formOf(form);
    const valid = createProfile('AdobeRGB');
    const plain = await draw({ kind, hasAlpha, encode, profile: undefined });
    const original = form.startsWith('PNG')
      ? withProfile(plain, profile)
      : replace(await draw({ kind, hasAlpha, encode, profile: valid }), valid, profile);
    const shown = await render(original, '?format=webp');
    expect(largestDifference(shown, await render(plain, '?format=webp'))).toBe(0);
  });

  test('a gamma is applied to millions of pixels', async () => {
    const [widthPx, heightPx] = [4096, 3072];
    const grey = await sharp({
      create: { width: widthPx, height: heightPx, channels: 3, background: '#010101' },
    })
      .png({ compressionLevel: 1 })
      .toBuffer();
    const linear = afterIhdr(grey, pngChunk('gAMA', u32be(100_000)));
    // sRGB of a light of 1 / 255
    expect((await render(linear, '?format=webp&width=1200'))[0]).toEqual([13, 13, 13]);
  });

  test('colours of a profile that is a table are in 16 bits what they are in 8', async () => {
    const profile = createTableProfile('AdobeRGB');
    const [, kind, hasAlpha, encode] = formOf('PNG of 8 bits');
    const plain = await draw({ kind, hasAlpha, encode, profile });
    const deep = await sharp(plain).keepIccProfile().toColourspace('rgb16').png().toBuffer();
    const shown = await render(deep, '?format=webp');
    const expected = await render(plain, '?format=webp');
    expect(largestDifference(shown, expected)).toBeLessThanOrEqual(TABLE_TOLERANCE);
  });
}
