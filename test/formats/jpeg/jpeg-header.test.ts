import { describe, expect, test } from 'vitest';
import { afterSoi, join, jpegSegment, tiffOrientation } from '../containers.ts';
import { corpusFile, factsOf, plainStill, testCorrupt, verdictOn } from '../facts-of.ts';

const jpeg = corpusFile('jpeg-photo/wuffs__hippopotamus.jpeg');
const exif = (value: number) => jpegSegment(0xe1, join('Exif\0\0', tiffOrientation(value)));
const eoi = join(0xff, 0xd9);

/** The offset of a marker, of which the file has one. */
function find(code: number): number {
  return jpeg.indexOf(join(0xff, code));
}

/** The file with the bytes of a start of frame changed, counted from its marker. */
function withFrame(changes: Readonly<Record<number, number>>): Buffer {
  const bytes = Buffer.from(jpeg);
  for (const [offset, value] of Object.entries(changes)) {
    bytes[find(0xc0) + Number(offset)] = value;
  }
  return bytes;
}

test('a bare jpeg is clean', () => {
  expect(verdictOn(jpeg)).toEqual({
    format: 'jpeg',
    widthPx: 36,
    heightPx: 28,
    scans: 1,
    ...plainStill,
  });
});

test('scans are counted', () => {
  const scan = jpegSegment(0xda, join(1, 1, 0, 0, 63, 0));
  expect(factsOf(join(jpeg.subarray(0, -2), scan, '\0', scan, '\0', eoi)).scans).toBe(3);
});

test.each([
  ['fill bytes before a marker', join(0xff, 0xff, 0xff)],
  ['Adobe APP14 with three components', jpegSegment(0xee, 'Adobe\0\x64\0\0\0\0\x01')],
  ['a restart interval', jpegSegment(0xdd, '\0\0')],
])('%s: clean', (_, bytes) => {
  expect(factsOf(afterSoi(jpeg, bytes)).isClean).toBe(true);
});

test.each([
  ['EXIF', exif(1)],
  ['XMP', jpegSegment(0xe1, 'http://ns.adobe.com/xap/1.0/\0<x/>')],
  ['an ICC profile', jpegSegment(0xe2, 'ICC_PROFILE\0\x01\x01profile')],
  ['a multi-picture index', jpegSegment(0xe2, 'MPF\0II*\0')],
  ['IPTC', jpegSegment(0xed, 'Photoshop 3.0\x008BIM')],
  ['a comment', jpegSegment(0xfe, 'hello')],
  ['an empty comment', jpegSegment(0xfe, '')],
  ['a private segment', jpegSegment(0xe5, 'private')],
  ['a JFXX thumbnail', jpegSegment(0xe0, 'JFXX\0\x13')],
  ['a JFIF thumbnail', jpegSegment(0xe0, 'JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01rgb')],
  ['a long Adobe segment', jpegSegment(0xee, 'Adobe\0\x64\0\0\0\0\x01hidden')],
  ['junk between segments', join('junk')],
  ['a stuffed zero between segments', join(0xff, 0)],
  ['a restart marker outside of a scan', join(0xff, 0xd0)],
  ['a reserved marker', join(0xff, 0x02)],
  ['a comment whose length is too short', join(0xff, 0xfe, 0, 0)],
])('%s: not clean, but no error', (_, bytes) => {
  expect(factsOf(afterSoi(jpeg, bytes))).toMatchObject({ widthPx: 36, isClean: false });
});

test.each(['\0', 'PK\x03\x04', '\n'])('bytes after EOI are not clean: %j', (bytes) => {
  expect(factsOf(join(jpeg, bytes)).isClean).toBe(false);
});

test('four components, arithmetic coding and a wrong comment length are not clean', () => {
  for (const name of [
    'jpeg-cmyk/thumbor__cmyk.jpg',
    'jpeg-sampling/imgproxy__test1.arith.jpg',
    'hostile-corrupt/wuffs__hippopotamus-bad-comment-length.jpeg',
  ]) {
    expect([name, factsOf(corpusFile(name)).isClean]).toEqual([name, false]);
  }
});

describe('orientation', () => {
  test('is that of the first EXIF segment', () => {
    expect(factsOf(afterSoi(jpeg, exif(6), exif(3))).orientation).toBe(6);
  });

  test('needs the two zeros of the prefix, whatever follows', () => {
    const broken = jpegSegment(0xe1, join('Exifxx', tiffOrientation(6)));
    expect(factsOf(afterSoi(jpeg, broken, exif(3))).orientation).toBe(1);
  });

  test('is not read after the first scan', () => {
    const bytes = join(jpeg.subarray(0, -2), exif(6), eoi);
    expect(factsOf(bytes)).toMatchObject({ orientation: 1, isClean: false });
  });
});

testCorrupt([
  ['nothing but SOI', join(0xff, 0xd8)],
  ['no scan', join(jpeg.subarray(0, find(0xda)), eoi)],
  ['no frame', join(0xff, 0xd8, jpeg.subarray(find(0xda)))],
  ['no EOI', jpeg.subarray(0, -2)],
  ['half of EOI', jpeg.subarray(0, -1)],
  ['two frames', afterSoi(jpeg, jpeg.subarray(find(0xc0), find(0xc0) + 19))],
  ['no height', withFrame({ 5: 0, 6: 0 })],
  ['no width', withFrame({ 7: 0, 8: 0 })],
  ['no components', withFrame({ 9: 0 })],
  ['a frame of a wrong length', withFrame({ 3: 18 })],
  ['a table of length 0', afterSoi(jpeg, join(0xff, 0xdb, 0, 0))],
  ['a segment past the end', afterSoi(jpeg, join(0xff, 0xe1, 0xff, 0xff))],
]);

test.each([
  ['lossless', withFrame({ 1: 0xc3 })],
  ['hierarchical', withFrame({ 1: 0xc5 })],
  ['12 bit', withFrame({ 4: 12 })],
])('a %s jpeg is nothing libjpeg decodes', (_, bytes) => {
  expect(verdictOn(bytes)).toBe('unsupported');
});
