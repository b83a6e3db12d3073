import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import type { Orientation } from '../../src/formats/image-facts.ts';
import { containerOf } from '../../src/formats/read-image-facts.ts';
import {
  afterIhdr,
  afterSoi,
  join,
  jpegSegment,
  pngChunk,
  riffChunk,
  tiffOrientation,
  vp8x,
  webpFile,
} from './containers.ts';
import { corpusFile, factsOf } from './facts-of.ts';

const SIZE = { widthPx: 4, heightPx: 2 };
const prepare = (file: Uint8Array, orientation: Orientation): Uint8Array =>
  containerOf(file)?.prepare(file, orientation, SIZE) ?? file;
const SECRET = 'taken at home';

const blank = sharp({ create: { width: 4, height: 2, channels: 3, background: '#c33' } });
const jpeg = await blank.clone().jpeg().toBuffer();
const png = await blank.clone().png().toBuffer();
const webp = await blank.clone().webp().toBuffer();

/** A file of each kind around an EXIF block. */
const around: Readonly<Record<string, (tiff: Uint8Array) => Buffer>> = {
  jpeg: (tiff) => afterSoi(jpeg, jpegSegment(0xe1, join('Exif\0\0', tiff))),
  'jpeg with junk and fill bytes before it': (tiff) =>
    afterSoi(jpeg, join(0, 1, 2, 0xff, 0xff, 0xff), jpegSegment(0xe1, join('Exif\0\0', tiff))),
  'jpeg with two': (tiff) =>
    afterSoi(jpeg, ...[1, 2].map(() => jpegSegment(0xe1, join('Exif\0\0', tiff)))),
  png: (tiff) => afterIhdr(png, pngChunk('eXIf', tiff)),
  webp: (tiff) => webpFile(vp8x(8, 4, 2), webp.subarray(12), riffChunk('EXIF', tiff)),
  'webp with a prefix': (tiff) =>
    webpFile(vp8x(8, 4, 2), webp.subarray(12), riffChunk('EXIF', join('Exif\0\0', tiff))),
};

test.each(Object.entries(around))(
  'a %s says its orientation and nothing else',
  async (name, wrap) => {
    for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8] as const) {
      const original = wrap(join(tiffOrientation(orientation, 'MM'), SECRET));
      const before = Buffer.from(original);
      const plain = prepare(original, orientation);
      expect(plain.length).toBe(original.length);
      expect(Buffer.from(plain).includes(SECRET)).toBe(false);
      expect(original.equals(before)).toBe(true);
      const metadata = await sharp(plain).metadata();
      expect(metadata.orientation ?? 1).toBe(orientation);
      // The decoder has nothing to warn of: checksums are right.
      const failOn = name.includes('junk') ? 'error' : 'warning';
      await sharp(plain, { failOn }).raw().toBuffer();
    }
  },
);

test.each(Object.entries(around))('a %s whose block could not be shorter', async (_, wrap) => {
  const original = wrap(tiffOrientation(6).subarray(0, 22));
  expect(factsOf(original).orientation).toBe(6);
  const plain = prepare(original, 6);
  expect((await sharp(plain).metadata()).orientation).toBe(6);
});

test('a chunk of a png has the right checksum afterwards', () => {
  const [before, after] = (['MM', 'II'] as const).map((order) =>
    afterIhdr(png, pngChunk('eXIf', tiffOrientation(6, order))),
  );
  expect(prepare(before ?? png, 6)).toEqual(after);
});

test('an avif has no EXIF any more', async () => {
  const original = corpusFile('avif/libavif__paris_icc_exif_xmp.avif');
  expect((await sharp(original).metadata()).exif).toBeDefined();
  const { exif, icc, width } = await sharp(prepare(original, 1)).metadata();
  expect({ exif, hasIcc: icc !== undefined, width }).toEqual({
    exif: undefined,
    hasIcc: true,
    width: 403,
  });
});

test.each(['avif/libavif__white_1x1.avif', 'webp-lossy/wuffs__hat.lossy.webp'])(
  '%s without EXIF comes back as it is',
  (file) => {
    const original = corpusFile(file);
    expect(prepare(original, 1)).toBe(original);
  },
);

test('what is cut off or lies about its length is left to others', () => {
  for (const wrap of Object.values(around)) {
    const whole = wrap(join(tiffOrientation(6), SECRET));
    for (let length = 0; length < whole.length; length += 1) {
      const cut = whole.subarray(0, length);
      expect(prepare(cut, 6).length).toBe(length);
    }
  }
});

test('EXIF after the image data of a jpeg is not looked for', () => {
  const late = join(jpeg.subarray(0, -2), jpegSegment(0xe1, 'Exif\0\0'), jpeg.subarray(-2));
  expect(prepare(late, 1)).toBe(late);
});

test('text that only looks like it is left alone', () => {
  const text = afterIhdr(png, pngChunk('zTXt', join('eXIf\0\0', deflateSync('eXIf'))));
  expect(prepare(text, 1)).toBe(text);
});
