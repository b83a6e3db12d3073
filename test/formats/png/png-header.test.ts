import { describe, expect, test } from 'vitest';
import { afterIhdr, join, pngChunk, tiffOrientation, u32be } from '../containers.ts';
import { corpusFile, factsOf, plainStill, testCorrupt, verdictOn } from '../facts-of.ts';

const png = corpusFile('png-8/wuffs__hippopotamus.regular.png');
const iend = pngChunk('IEND');
const beforeIend = png.subarray(0, png.length - iend.length);
const signature = png.subarray(0, 8);
const header = (widthPx: number, heightPx: number, depth = 8, colour = 2, rest = '\0\0\0') =>
  pngChunk('IHDR', join(u32be(widthPx), u32be(heightPx), depth, colour, rest));

/** The chunk with one bit of its CRC turned. */
function badCrc(chunk: Buffer): Buffer {
  const bytes = Buffer.from(chunk);
  bytes.writeUInt8((bytes.at(-1) ?? 0) ^ 1, bytes.length - 1);
  return bytes;
}

test('a bare png is clean', () => {
  expect(verdictOn(png)).toEqual({
    format: 'png',
    widthPx: 36,
    heightPx: 28,
    ...plainStill,
  });
});

test.each([
  ['gAMA', 4],
  ['cHRM', 32],
  ['sRGB', 1],
  ['sBIT', 3],
  ['bKGD', 6],
  ['hIST', 2],
  ['pHYs', 9],
  ['tRNS', 6],
])('%s is clean, and no longer so with a byte too many', (type, bytes) => {
  expect(factsOf(afterIhdr(png, pngChunk(type, Buffer.alloc(bytes)))).isClean).toBe(true);
  expect(factsOf(afterIhdr(png, pngChunk(type, Buffer.alloc(600)))).isClean).toBe(false);
});

test.each([
  'tEXt',
  'zTXt',
  'iTXt',
  'eXIf',
  'iCCP',
  'tIME',
  'acTL',
  'fcTL',
  'fdAT',
  'cICP',
  'sPLT',
  'prVt',
])('%s is not clean, before the image data and after it', (type) => {
  expect(factsOf(afterIhdr(png, pngChunk(type, 'x'))).isClean).toBe(false);
  expect(factsOf(join(beforeIend, pngChunk(type, 'x'), iend)).isClean).toBe(false);
});

test.each([
  [1, 0, 1, true],
  [1, 0, 2, false],
  [4, 0, 0x0f, true],
  [4, 0, 0x10f, false],
  [8, 2, 0xff, true],
  [8, 2, 0x100, false],
  [16, 0, 0xffff, true],
])(
  'with %i bits of colour type %i, a transparent %i is clean: %s',
  (bits, type, value, isClean) => {
    const sample = join(value >>> 8, value & 0xff);
    const colour = type === 0 ? sample : join(sample, sample, sample);
    const parts = [signature, header(8, 1, bits, type), pngChunk('tRNS', colour)];
    const file = join(...parts, pngChunk('IDAT', 'x'), iend);
    expect(factsOf(file).isClean).toBe(isClean);
  },
);

test('bytes after IEND and bytes in it are not clean', () => {
  expect(factsOf(join(png, '\0')).isClean).toBe(false);
  expect(factsOf(join(beforeIend, pngChunk('IEND', 'x'))).isClean).toBe(false);
});

test('a wrong CRC of an ancillary chunk and of IEND is no error', () => {
  expect(factsOf(afterIhdr(png, badCrc(pngChunk('gAMA', '\0\0\0\0')))).widthPx).toBe(36);
  expect(factsOf(join(beforeIend, badCrc(iend)))).toMatchObject({ widthPx: 36, isClean: false });
});

test('an acTL after the image data makes no APNG', () => {
  const actl = pngChunk('acTL', join(u32be(1), u32be(0)));
  expect(factsOf(join(beforeIend, actl, iend))).toMatchObject({ format: 'png', isClean: false });
  expect(factsOf(afterIhdr(png, actl))).toMatchObject({ format: 'apng', isClean: false });
});

describe('image data of a still', () => {
  const file = (ihdr: Buffer, ...idats: readonly number[]): Buffer => {
    const chunks = idats.map((bytes) => pngChunk('IDAT', Buffer.alloc(bytes)));
    return join(signature, ihdr, ...chunks, iend);
  };

  // Deflate makes 1032 bytes of one at most.
  test.each([
    ['too few for grey', header(1032, 1000, 8, 0), [500, 499], true],
    ['enough for grey', header(1032, 1000, 8, 0), [500, 500], false],
    ['too few for 16 bits of RGBA', header(1032, 1000, 16, 6), [7999], true],
    ['enough for 1 bit', header(1032, 1000, 1, 0), [125], false],
    ['too few when interlaced', header(1032, 1000, 8, 0, '\0\0\x01'), [999], true],
  ] as const)('%s', (_, ihdr, idats, isFault) => {
    const { dataFault } = factsOf(file(ihdr, ...idats));
    expect(dataFault).toEqual(isFault ? expect.stringMatching(/^PNG: \d+ bytes of/) : undefined);
  });

  test('of a whole file can hold it', () => {
    expect(factsOf(png).dataFault).toBeUndefined();
  });
});

describe('orientation', () => {
  const exif = (value: number) => pngChunk('eXIf', tiffOrientation(value, 'MM'));

  test('is that of the first eXIf that is a TIFF block', () => {
    const broken = pngChunk('eXIf', join('Exif\0\0', tiffOrientation(3)));
    expect(factsOf(afterIhdr(png, broken, exif(6), exif(8))).orientation).toBe(6);
  });

  test('counts with a wrong CRC too', () => {
    expect(factsOf(afterIhdr(png, badCrc(exif(6)))).orientation).toBe(6);
  });

  test('is not read after the image data', () => {
    expect(factsOf(join(beforeIend, exif(6), iend)).orientation).toBe(1);
  });
});

const idat = png.subarray(33, png.length - iend.length);
const withHeader = (ihdr: Buffer) => join(signature, ihdr, idat, iend);

testCorrupt([
  ['no width', withHeader(header(0, 28))],
  ['no height', withHeader(header(36, 0))],
  ['a width beyond 31 bit', withHeader(header(0x8000_0000, 28))],
  ['a bit depth of 3', withHeader(header(36, 28, 3))],
  ['a colour type of 1', withHeader(header(36, 28, 8, 1))],
  ['an unknown compression', withHeader(header(36, 28, 8, 2, '\x01\0\0'))],
  ['an unknown filter', withHeader(header(36, 28, 8, 2, '\0\x01\0'))],
  ['an unknown interlace', withHeader(header(36, 28, 8, 2, '\0\0\x02'))],
  ['a palette image without palette', withHeader(header(36, 28, 8, 3))],
  ['a wrong CRC of IHDR', withHeader(badCrc(header(36, 28)))],
  ['IHDR not first', join(signature, pngChunk('gAMA', '\0\0\0\0'), png.subarray(8))],
  ['IHDR twice', afterIhdr(png, header(36, 28))],
  ['no IDAT', join(png.subarray(0, 33), iend)],
  ['no IEND', beforeIend],
  ['IDAT in two places', join(beforeIend, pngChunk('gAMA', '\0\0\0\0'), pngChunk('IDAT'), iend)],
  ['a wrong CRC of IDAT', join(beforeIend, badCrc(pngChunk('IDAT')), iend)],
  ['a chunk type that is none', afterIhdr(png, pngChunk('ab1d'))],
  ['a chunk past the end', join(beforeIend, u32be(0x7fff_ffff), 'tEXt')],
]);

describe('the gamma of a PNG', () => {
  const gammaOf = (file: string): number | undefined => factsOf(corpusFile(file)).gamma;

  test.each([
    ['png-gamma/wuffs__red-blue-gradient.gamma1dot0.png', 1],
    ['png-gamma/wuffs__red-blue-gradient.gamma1dot8.png', 0.55556],
    ['png-gamma/wuffs__red-blue-gradient.gamma2dot2.png', 0.45455],
    ['png-16/codeccorpus__g25n0g16.png', 2.5],
    ['png-gamma/wuffs__red-blue-gradient.vanilla.png', undefined],
    // A profile, sRGB or cICP says it better (PNG 3rd edition §4.3).
    ['png-gamma/wuffs__red-blue-gradient.dcip3d65-no-chrm-no-gama.png', undefined],
    ['png-palette/wuffs__bricks-dither.png', undefined],
    ['icc-wide/imagepng__cicp_pq.png', undefined],
  ])('%s is %s', (file, gamma) => {
    expect(gammaOf(file)).toBe(gamma);
  });

  test('counts for nothing where libpng ignores the chunk', () => {
    const gamma = (chunk: Buffer): number | undefined => factsOf(afterIhdr(png, chunk)).gamma;
    expect(gamma(pngChunk('gAMA', '\0\x01\x86\xa0'))).toBe(1);
    expect(gamma(pngChunk('gAMA', '\0\0\0\0'))).toBeUndefined();
    expect(gamma(pngChunk('gAMA', '\0\x01\x86'))).toBeUndefined();
    expect(gamma(badCrc(pngChunk('gAMA', '\0\x01\x86\xa0')))).toBeUndefined();
  });
});
