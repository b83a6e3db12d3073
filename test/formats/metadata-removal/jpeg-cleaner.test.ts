import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import {
  afterSoi,
  join,
  jpegSegment,
  put,
  tiffOrientation,
  u16le,
  u32be,
  u32le,
} from '../containers.ts';
import { corpusFile, corpusFiles, headerOf } from '../header-of.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import { expectSamePicture } from './pixels.ts';

const blank = await sharp({ create: { width: 32, height: 16, channels: 3, background: '#c33' } })
  .jpeg()
  .toBuffer();

const segment = {
  exif: (tiff: Uint8Array) => jpegSegment(0xe1, join('Exif\0\0', tiff)),
  xmp: jpegSegment(0xe1, `http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>${SECRET}</x:xmpmeta>`),
  extendedXmp: jpegSegment(0xe1, `http://ns.adobe.com/xmp/extension/\0${SECRET}`),
  iptc: jpegSegment(0xed, `Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x20${SECRET}`),
  comment: jpegSegment(0xfe, SECRET),
  profile: jpegSegment(0xe2, 'ICC_PROFILE\0\x01\x01profile'),
  gainMap: jpegSegment(0xe2, 'urn:iso:std:iso:ts:21496:-1\0\0\0\0\0'),
  jfif: jpegSegment(0xe0, join('JFIF\0\x01\x02\0\0\x01\0\x01\x01\x01', SECRET)),
  adobe: jpegSegment(0xee, join('Adobe\0\x64\0\0\0\0\x01')),
};

function segmentsOf(jpeg: Buffer): string[] {
  const segments: string[] = [];
  for (let at = 2; jpeg[at + 1] !== 0xda; ) {
    const end = at + 2 + jpeg.readUInt16BE(at + 2);
    segments.push(jpeg.toString('latin1', at, end));
    at = end;
  }
  return segments;
}

/** A picture index (CIPA DC-007) with offsets from its TIFF structure. */
function pictureIndex(...offsets: readonly number[]): Buffer {
  const entries = [0, ...offsets].map((offset) =>
    join(u32le(0), u32le(9), u32le(offset), u32le(0)),
  );
  const bytes = 16 * entries.length;
  const directory = join(u16le(1), u16le(0xb002, 7), u32le(bytes), u32le(26), u32le(0));
  return jpegSegment(0xe2, join('MPF\0', 'II*\0', u32le(8), directory, ...entries));
}

describe('a cleaned JPEG', () => {
  test.each([
    ['XMP', segment.xmp],
    ['extended XMP', segment.extendedXmp],
    ['IPTC', segment.iptc],
    ['comments', segment.comment],
    [
      'EXIF of a maximum length',
      segment.exif(join(tiffOrientation(6), 'x'.repeat(65_470), SECRET)),
    ],
    ['vendor segments', jpegSegment(0xe2, `HUAWEI\0${SECRET}`)],
    ['content credentials', jpegSegment(0xeb, `JP\0\x01\0\0\0\x01\0\0\0\x40jumb${SECRET}`)],
    ['thumbnails of JFIF', segment.jfif],
    ['bytes after an Adobe marker', jpegSegment(0xee, `Adobe\0\x64\0\0\0\0\x01${SECRET}`)],
    ['bytes between segments', Buffer.from(`${SECRET}\xff\0`, 'latin1')],
  ])('has no %s', async (_, bytes) => {
    const file = afterSoi(blank, bytes);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    await expectSamePicture(cleaned, file);
  });

  test('has no comment, not even an empty one', () => {
    const cleaned = cleanInAnyChunks(afterSoi(blank, segment.comment, jpegSegment(0xfe, '')));
    expect(segmentsOf(cleaned).filter((each) => each.startsWith('\xff\xfe'))).toEqual([]);
  });

  test.each([1, 3, 6, 8])('has the orientation %i and no other EXIF', (orientation) => {
    const tiff = join(tiffOrientation(orientation, 'MM'), SECRET);
    const file = afterSoi(blank, segment.exif(tiff), segment.exif(tiffOrientation(2)));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(headerOf(cleaned).orientation).toBe(orientation);
    expect(cleaned.includes('Exif\0\0II')).toBe(true);
    expect(cleaned.lastIndexOf('Exif')).toBe(cleaned.indexOf('Exif'));
  });

  test('has no EXIF if there was no orientation', () => {
    const file = afterSoi(blank, segment.exif(join('II*\0', SECRET)));
    expect(cleanInAnyChunks(file).includes('Exif')).toBe(false);
  });

  test.each(['jfif', 'profile', 'gainMap', 'adobe'] as const)('keeps %s', (name) => {
    const kept =
      name === 'jfif' ? jpegSegment(0xe0, 'JFIF\0\x01\x02\0\0\x01\0\x01\0\0') : segment[name];
    const file = afterSoi(blank, kept, pictureIndex());
    expect(cleanInAnyChunks(file).equals(file)).toBe(true);
  });

  test('keeps the pictures that its index lists, without their metadata', () => {
    const follower = afterSoi(blank, segment.exif(join(tiffOrientation(6), SECRET)), segment.xmp);
    const gap = Buffer.from(SECRET);
    const start = afterSoi(blank, pictureIndex(0)).length + gap.length;
    // Offsets count from the TIFF structure, after SOI, marker, length and name.
    const first = afterSoi(blank, pictureIndex(start - 10));
    const file = join(first, gap, follower, SECRET);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.subarray(first.length, start)).toEqual(Buffer.alloc(gap.length));
    const second = cleaned.subarray(start, start + follower.length);
    expect(second).toEqual(clean(follower).bytes);
    expect(headerOf(second).orientation).toBe(6);
  });

  test.each([
    ['a video', join(u32be(24), 'ftypmp42', u32be(0), SECRET)],
    ['a picture that no index lists', afterSoi(blank, segment.comment)],
    ["another camera's trailer", Buffer.from(`SEFH${SECRET}SEFT`)],
  ])('has zeros instead of %s after its end', (_, trailer) => {
    const file = join(blank, trailer);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned).toEqual(join(blank, Buffer.alloc(trailer.length)));
  });

  test('has the same scans, restart markers included', async () => {
    for (const name of corpusFiles('jpeg-progressive', 'jpeg-sampling', 'jpeg-cmyk')) {
      const file = corpusFile(name);
      const cleaned = cleanInAnyChunks(file);
      await expectSamePicture(cleaned, file);
    }
  });
});

describe('rejects a JPEG', () => {
  test.each([
    ['without its end', blank.subarray(0, -2), 'The JPEG is truncated.'],
    ['that ends within a segment', blank.subarray(0, 40), 'The JPEG is truncated.'],
    ['without an image', join('\xff\xd8\xff\xd9'), 'The JPEG is damaged: it has no image.'],
    ['of another process', put(blank, 3, 0xf7), 'The JPEG is damaged: unknown marker.'],
  ])('%s', (_, file, message) => {
    for (const sizes of [[file.length], [1]]) {
      expect(() => clean(file, sizes)).toThrow(new MetadataRemovalError(message));
    }
  });
});
