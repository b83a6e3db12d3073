import { expect, test } from 'vitest';
import { afterSoi, join, jpegSegment, put, tiffOrientation } from '../containers.ts';
import { corpusFile, plainStill, testVerdicts, verdictOn } from '../header-of.ts';

const jpeg = corpusFile('jpeg-photo/wuffs__hippopotamus.jpeg');
const exif = (value: number, prefix = 'Exif\0\0') =>
  jpegSegment(0xe1, join(prefix, tiffOrientation(value)));
const withSegment = (code: number, data: Uint8Array | string) =>
  afterSoi(jpeg, jpegSegment(code, data));
const [soi, eoi] = [join(0xff, 0xd8), join(0xff, 0xd9)];
const body = jpeg.subarray(0, -2);
const scan = join(jpegSegment(0xda, join(1, 1, 0, 0, 63, 0)), 0);
/** Offset of the only marker with a code. */
const find = (code: number): number => jpeg.indexOf(join(0xff, code));

/** The file with bytes of its start of frame changed, counted from its marker. */
const withFrame = (at: number, ...values: readonly number[]) =>
  put(jpeg, find(0xc0) + at, ...values);

test('a bare JPEG can be passed through', () => {
  expect(verdictOn(jpeg)).toEqual({
    ...{ format: 'jpeg', scans: 1, widthPx: 36, heightPx: 28, isPlain: true },
    hasLoss: true,
    ...plainStill,
  });
});

test('reads the number of scans, and the orientation of the first EXIF', () => {
  expect(verdictOn(join(body, scan, scan, eoi))).toMatchObject({ scans: 3 });
  expect(verdictOn(afterSoi(jpeg, exif(6), exif(3)))).toMatchObject({ orientation: 6 });
});

testVerdicts(
  'a JPEG that can be passed through',
  { isClean: true },
  {
    'fill bytes before a marker': afterSoi(jpeg, join(0xff, 0xff, 0xff)),
    'Adobe APP14 with three components': withSegment(0xee, 'Adobe\0\x64\0\0\0\0\x01'),
    'a restart interval': withSegment(0xdd, '\0\0'),
  },
);

testVerdicts(
  'a JPEG that is read, but never passed through',
  { isClean: false, orientation: 1 },
  {
    EXIF: afterSoi(jpeg, exif(1)),
    'EXIF after the scan': join(body, exif(6), eoi),
    'EXIF without the zeros of its prefix, before another': afterSoi(
      jpeg,
      exif(6, 'Exifxx'),
      exif(3),
    ),
    XMP: withSegment(0xe1, 'http://ns.adobe.com/xap/1.0/\0<x/>'),
    'an ICC profile': withSegment(0xe2, 'ICC_PROFILE\0\x01\x01profile'),
    'a multi-picture index': withSegment(0xe2, 'MPF\0II*\0'),
    IPTC: withSegment(0xed, 'Photoshop 3.0\x008BIM'),
    'an empty comment': withSegment(0xfe, ''),
    'a private segment': withSegment(0xe5, 'private'),
    'a JFXX thumbnail': withSegment(0xe0, 'JFXX\0\x13'),
    'a JFIF thumbnail': withSegment(0xe0, 'JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01rgb'),
    'a long Adobe segment': withSegment(0xee, 'Adobe\0\x64\0\0\0\0\x01hidden'),
    'junk between segments': afterSoi(jpeg, join('junk')),
    'a stuffed zero between segments': afterSoi(jpeg, join(0xff, 0)),
    'a restart marker outside of a scan': afterSoi(jpeg, join(0xff, 0xd0)),
    'a reserved marker': afterSoi(jpeg, join(0xff, 0x02)),
    'a comment whose length is too short': afterSoi(jpeg, join(0xff, 0xfe, 0, 0)),
    'a comment with too large a length': corpusFile(
      'hostile-corrupt/wuffs__hippopotamus-bad-comment-length.jpeg',
    ),
    'four components': corpusFile('jpeg-cmyk/thumbor__cmyk.jpg'),
    'arithmetic coding': corpusFile('jpeg-sampling/imgproxy__test1.arith.jpg'),
    'a byte after EOI': join(jpeg, 0),
  },
);

testVerdicts('a corrupt JPEG', 'corrupt', {
  'no scan': join(jpeg.subarray(0, find(0xda)), eoi),
  'no frame': join(soi, jpeg.subarray(find(0xda))),
  'two frames': afterSoi(jpeg, jpeg.subarray(find(0xc0), find(0xc0) + 19)),
  'no height': withFrame(5, 0, 0),
  'no width': withFrame(7, 0, 0),
  'no components': withFrame(9, 0),
  'a frame of a wrong length': withFrame(3, 18),
  'a table of length 0': afterSoi(jpeg, join(0xff, 0xdb, 0, 0)),
  'a segment past the end': afterSoi(jpeg, join(0xff, 0xe1, 0xff, 0xff)),
});

testVerdicts('a JPEG that libjpeg does not decode', 'unsupported', {
  lossless: withFrame(1, 0xc3),
  hierarchical: withFrame(1, 0xc5),
  '12 bit': withFrame(4, 12),
});
