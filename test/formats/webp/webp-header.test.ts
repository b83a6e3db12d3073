import { describe, expect, test } from 'vitest';
import {
  anmf,
  join,
  riffChunk,
  tiffOrientation,
  u16le,
  vp8x,
  webpChunks,
  webpFile,
} from '../containers.ts';
import { corpusFile, factsOf, plainStill, testCorrupt, verdictOn } from '../facts-of.ts';

const lossy = corpusFile('webp-lossy/wuffs__hippopotamus.lossy.webp');
const dot = webpChunks(corpusFile('webp-lossless/imagewebp__dark.webp'));
const image = webpChunks(lossy);
const flag = { animation: 2, xmp: 4, exif: 8, alpha: 16, icc: 32 };
const extended = (flags: number, ...chunks: readonly Uint8Array[]) =>
  webpFile(vp8x(flags, 36, 28), ...chunks);
const anim = (plays: number) => riffChunk('ANIM', join('\0\0\0\0', u16le(plays)));
const animated = (...chunks: readonly Uint8Array[]) =>
  webpFile(vp8x(flag.animation, 1, 1), ...chunks);

test('a bare webp is clean, simple or extended', () => {
  for (const bytes of [lossy, extended(0, image)]) {
    expect(verdictOn(bytes)).toEqual({
      format: 'webp',
      widthPx: 36,
      heightPx: 28,
      ...plainStill,
    });
  }
});

test.each([
  ['EXIF', extended(flag.exif, image, riffChunk('EXIF', tiffOrientation(1)))],
  ['EXIF without its flag', extended(0, image, riffChunk('EXIF', tiffOrientation(1)))],
  ['XMP', extended(flag.xmp, image, riffChunk('XMP ', join('<x/>')))],
  ['an ICC profile', extended(flag.icc, riffChunk('ICCP', join('profile')), image)],
  ['a flag without its chunk', extended(flag.icc, image)],
  ['an unknown chunk', extended(0, image, riffChunk('ABCD', join('x')))],
  ['a chunk after a simple image', webpFile(image, riffChunk('EXIF', tiffOrientation(1)))],
  ['bytes after the RIFF', join(lossy, '\0')],
  ['a long VP8X', webpFile(riffChunk('VP8X', join('\0\0\0\0\x23\0\0\x1b\0\0hidden')), image)],
  ['an unknown chunk in a frame', animated(anim(0), anmf(10, dot, riffChunk('ABCD', join('x'))))],
  ['a long ANIM', animated(riffChunk('ANIM', join('\0\0\0\0\0\0hidden')), anmf(10, dot))],
])('%s: not clean, but no error', (_, bytes) => {
  expect(factsOf(bytes).isClean).toBe(false);
});

describe('orientation', () => {
  const exif = (data: Buffer) => riffChunk('EXIF', data);

  test('is that of the first EXIF chunk, with or without prefix', () => {
    const bare = extended(flag.exif, image, exif(tiffOrientation(6)), exif(tiffOrientation(3)));
    expect(factsOf(bare)).toMatchObject({ orientation: 6, isClean: false });
    const prefixed = extended(flag.exif, image, exif(join('Exif\0\0', tiffOrientation(8))));
    expect(factsOf(prefixed).orientation).toBe(8);
  });

  test('counts only with its flag', () => {
    expect(factsOf(extended(0, image, exif(tiffOrientation(6)))).orientation).toBe(1);
  });
});

describe('animation', () => {
  test.each([0, 1, 3, 65_535])('ANIM tells %i plays', (plays) => {
    expect(verdictOn(animated(anim(plays), anmf(0, dot), anmf(70_000, dot)))).toEqual({
      format: 'webp',
      widthPx: 1,
      heightPx: 1,
      orientation: 1,
      frames: 2,
      animation: { delaysMs: [0, 70_000], plays },
      isClean: true,
    });
  });

  test('without ANIM it plays once', () => {
    expect(factsOf(animated(anmf(5, dot), anmf(5, dot))).animation?.plays).toBe(1);
  });

  test('one frame is no animation', () => {
    expect(factsOf(animated(anim(0), anmf(40, dot)))).toMatchObject({
      frames: 1,
      animation: undefined,
      isClean: true,
    });
  });

  test('frames in a file that is not called animated do not count', () => {
    expect(factsOf(extended(0, image, anmf(40, dot)))).toMatchObject({ frames: 1, isClean: false });
  });
});

const odd = join(webpFile(riffChunk('VP8L', dot.subarray(8, 8 + 17))));
const sized = (size: number) => {
  const bytes = Buffer.from(lossy);
  bytes.writeUInt32LE(size, 4);
  return bytes;
};

testCorrupt([
  ['a RIFF longer than the file', sized(lossy.length)],
  ['a RIFF that ends in its chunk', sized(lossy.length - 12)],
  ['a RIFF of nothing', sized(4)],
  ['a missing pad byte, which libwebp refuses', odd.subarray(0, -1)],
  ['an unknown first chunk', webpFile(riffChunk('ABCD', join('x')), image)],
  ['no image', extended(0)],
  ['no frames', animated(anim(0))],
  ['two images', extended(0, image, image)],
  ['an image and frames', animated(dot, anmf(10, dot))],
  ['two VP8X', extended(0, vp8x(0, 36, 28), image)],
  ['a short VP8X', webpFile(riffChunk('VP8X', join('\0\0\0\0')), image)],
  ['a short ANIM', animated(riffChunk('ANIM', join('\0\0')), anmf(10, dot))],
  ['an image that does not fill its canvas', webpFile(vp8x(0, 37, 28), image)],
  ['a frame that leaves its canvas', animated(anim(0), anmf(10, image))],
  ['a frame without an image', animated(anim(0), anmf(10))],
  ['a chunk that leaves its frame', animated(anmf(10, dot.subarray(0, 20)), dot)],
  ['a VP8 that is no key frame', webpFile(riffChunk('VP8 ', Buffer.alloc(12, 1)))],
  ['a VP8 of no width', webpFile(riffChunk('VP8 ', join('\0\0\0\x9d\x01\x2a\0\0\x01\0')))],
  ['a VP8L without signature', webpFile(riffChunk('VP8L', Buffer.alloc(12)))],
]);
