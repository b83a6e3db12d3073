import { expect, test } from 'vitest';
import {
  anmf,
  join,
  put,
  riffChunk,
  tiffOrientation,
  u16le,
  u32le,
  vp8x,
  webpFile,
} from '../containers.ts';
import { corpusFile, headerOf, plainStill, testVerdicts, verdictOn } from '../header-of.ts';

const lossy = corpusFile('webp-lossy/wuffs__hippopotamus.lossy.webp');
const image = lossy.subarray(12);
const dot = corpusFile('webp-lossless/imagewebp__dark.webp').subarray(12);
const flag = { animation: 2, xmp: 4, exif: 8, icc: 32 };
const chunk = (type: string, data: string | Uint8Array) => riffChunk(type, join(data));
const extended = (flags: number, ...chunks: readonly Uint8Array[]) =>
  webpFile(vp8x(flags, 36, 28), ...chunks);
const anim = (plays: number) => riffChunk('ANIM', join('\0\0\0\0', u16le(plays)));
const animated = (...chunks: readonly Uint8Array[]) =>
  webpFile(vp8x(flag.animation, 1, 1), ...chunks);
const exif = (value: number, prefix = '') => chunk('EXIF', join(prefix, tiffOrientation(value)));
const odd = webpFile(riffChunk('VP8L', dot.subarray(8, 8 + 17)));

/** The file with another RIFF size. */
const sized = (size: number) => put(lossy, 4, u32le(size));

test('a bare WebP, simple or extended, can be passed through', () => {
  for (const bytes of [lossy, extended(0, image)]) {
    expect(verdictOn(bytes)).toEqual({
      ...{ format: 'webp', widthPx: 36, heightPx: 28, isPlain: true },
      hasLoss: true,
      ...plainStill,
    });
  }
  // The upper bits of the width are a display scale (RFC 6386 §9.1), which WebP does not use.
  const width = lossy.indexOf('VP8 ') + 8 + 6;
  const scaled = put(lossy, width, u16le(lossy.readUInt16LE(width) | 0xc000));
  expect(verdictOn(scaled)).toEqual(verdictOn(lossy));
});

testVerdicts(
  'a WebP that is read, but never passed through',
  { isClean: false, orientation: 1, frames: 1 },
  {
    EXIF: extended(flag.exif, image, exif(1)),
    'EXIF without its flag': extended(0, image, exif(6)),
    XMP: extended(flag.xmp, image, chunk('XMP ', '<x/>')),
    'an ICC profile': extended(flag.icc, chunk('ICCP', 'profile'), image),
    'a flag without its chunk': extended(flag.icc, image),
    'an unknown chunk': extended(0, image, chunk('ABCD', 'x')),
    'a chunk after a simple image': webpFile(image, exif(1)),
    'a byte after the RIFF': join(lossy, 0),
    'a long VP8X': webpFile(chunk('VP8X', '\0\0\0\0\x23\0\0\x1b\0\0hidden'), image),
    'an unknown chunk in a frame': animated(anim(0), anmf(10, dot, chunk('ABCD', 'x'))),
    'a long ANIM': animated(chunk('ANIM', '\0\0\0\0\0\0hidden'), anmf(10, dot)),
    'a frame without the animation flag': extended(0, image, anmf(40, dot)),
  },
);

testVerdicts(
  'a WebP with an orientation',
  { orientation: 6, isClean: false },
  {
    'the first EXIF of two': extended(flag.exif, image, exif(6), exif(3)),
    'EXIF with a prefix': extended(flag.exif, image, exif(6, 'Exif\0\0')),
  },
);

test('a WebP without ANIM plays once, and one frame is not an animation', () => {
  expect(headerOf(animated(anmf(5, dot), anmf(5, dot))).animation?.plays).toBe(1);
  expect(headerOf(animated(anim(0), anmf(40, dot)))).toMatchObject(plainStill);
});

testVerdicts('a corrupt WebP', 'corrupt', {
  'a RIFF that ends within a chunk': sized(lossy.length - 12),
  'an empty RIFF': sized(4),
  'a missing padding byte, which libwebp rejects': odd.subarray(0, -1),
  'an unknown first chunk': webpFile(chunk('ABCD', 'x'), image),
  'no image': extended(0),
  'no frames': animated(anim(0)),
  'two images': extended(0, image, image),
  'an image and frames': animated(dot, anmf(10, dot)),
  'two VP8X': extended(0, vp8x(0, 36, 28), image),
  'a short VP8X': webpFile(chunk('VP8X', '\0\0\0\0'), image),
  'a short ANIM': animated(chunk('ANIM', '\0\0'), anmf(10, dot)),
  'an image that does not fill its canvas': webpFile(vp8x(0, 37, 28), image),
  'a frame that exceeds its canvas': animated(anim(0), anmf(10, image)),
  'a frame without an image': animated(anim(0), anmf(10)),
  'a chunk that exceeds its frame': animated(anmf(10, dot.subarray(0, 20)), dot),
  'a VP8 that is not a key frame': webpFile(riffChunk('VP8 ', Buffer.alloc(12, 1))),
  'a VP8 without a width': webpFile(chunk('VP8 ', '\0\0\0\x9d\x01\x2a\0\0\x01\0')),
  'a VP8L without signature': webpFile(riffChunk('VP8L', Buffer.alloc(12))),
});
