import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { containerOf } from '../../src/formats/containers.ts';
import type { Orientation } from '../../src/formats/image-header.ts';
import * as made from './containers.ts';
import { corpusFile, headerOf } from './header-of.ts';

const { join, tiffOrientation } = made;
const prepare = (file: Uint8Array, orientation: Orientation): Uint8Array =>
  containerOf(file)?.prepare(file, orientation) ?? file;
const SECRET = 'taken at home';

const blank = sharp({ create: { width: 4, height: 2, channels: 3, background: '#c33' } });
const jpeg = await blank.clone().jpeg().toBuffer();
const png = await blank.clone().png().toBuffer();
const webp = (await blank.clone().webp().toBuffer()).subarray(12);
const app1 = (tiff: Uint8Array) => made.jpegSegment(0xe1, join('Exif\0\0', tiff));
const inWebp = (exif: Uint8Array) =>
  made.webpFile(made.vp8x(8, 4, 2), webp, made.riffChunk('EXIF', exif));
const inPng = (tiff: Uint8Array) => made.afterIhdr(png, made.pngChunk('eXIf', tiff));

/** A file of each kind around an EXIF block. */
const around: [name: string, wrap: (tiff: Uint8Array) => Buffer][] = [
  ['jpeg', (tiff) => made.afterSoi(jpeg, app1(tiff))],
  [
    'jpeg with junk and fill bytes before it',
    (tiff) => made.afterSoi(jpeg, join(0, 1, 2, 0xff, 0xff, 0xff), app1(tiff)),
  ],
  ['jpeg with two', (tiff) => made.afterSoi(jpeg, app1(tiff), app1(tiff))],
  ['png', inPng],
  ['webp', inWebp],
  ['webp with a prefix', (tiff) => inWebp(join('Exif\0\0', tiff))],
];

describe.each(around)('a %s prepared for the decoder', (name, wrap) => {
  test('keeps its orientation and no other metadata', async () => {
    for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8] as const) {
      const original = wrap(join(tiffOrientation(orientation, 'MM'), SECRET));
      const before = Buffer.from(original);
      const plain = prepare(original, orientation);
      expect(plain.length).toBe(original.length);
      expect(Buffer.from(plain).includes(SECRET)).toBe(false);
      expect(original.equals(before)).toBe(true);
      expect((await sharp(plain).metadata()).orientation ?? 1).toBe(orientation);
      // The decoder does not warn: checksums are valid.
      const failOn = name.includes('junk') ? 'error' : 'warning';
      await sharp(plain, { failOn }).raw().toBuffer();
    }
  });

  test('may have the shortest possible EXIF block', async () => {
    const original = wrap(tiffOrientation(6).subarray(0, 22));
    expect(headerOf(original).orientation).toBe(6);
    expect((await sharp(prepare(original, 6)).metadata()).orientation).toBe(6);
  });

  test('is unchanged if its EXIF is truncated anywhere', () => {
    const whole = wrap(join(tiffOrientation(6), SECRET));
    for (let length = 0; length < whole.length; length += 1) {
      expect(prepare(whole.subarray(0, length), 6).length).toBe(length);
    }
  });
});

test('a PNG prepared for the decoder has valid checksums', () => {
  expect(prepare(inPng(tiffOrientation(6, 'MM')), 6)).toEqual(inPng(tiffOrientation(6, 'II')));
});

test('an AVIF prepared for the decoder has its profile, but no EXIF', async () => {
  const original = corpusFile('avif/libavif__paris_icc_exif_xmp.avif');
  expect((await sharp(original).metadata()).exif).toBeDefined();
  const prepared = await sharp(prepare(original, 1)).metadata();
  expect(prepared).toMatchObject({ icc: expect.anything(), width: 403 });
  expect(prepared.exif).toBeUndefined();
});

test.each([
  ['an avif without EXIF', corpusFile('avif/libavif__white_1x1.avif')],
  ['a webp without EXIF', corpusFile('webp-lossy/wuffs__hat.lossy.webp')],
  [
    'a jpeg with EXIF after its image data',
    join(jpeg.subarray(0, -2), app1(join()), jpeg.subarray(-2)),
  ],
  [
    'text that only looks like it',
    made.afterIhdr(png, made.pngChunk('zTXt', join('eXIf\0\0', deflateSync('eXIf')))),
  ],
])('preparation for the decoder does not change %s', (_, original) => {
  expect(prepare(original, 1)).toBe(original);
});
