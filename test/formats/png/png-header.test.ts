import { describe, expect, test } from 'vitest';
import { afterIhdr, join, pngChunk, tiffOrientation, u32be, withWrongCrc } from '../containers.ts';
import { corpusFile, headerOf, plainStill, testVerdicts, verdictOn } from '../header-of.ts';

const png = corpusFile('png-8/wuffs__hippopotamus.regular.png');
const iend = pngChunk('IEND');
const beforeIend = png.subarray(0, -iend.length);
const signature = png.subarray(0, 8);
const idat = png.subarray(33, -iend.length);
const header = (widthPx: number, heightPx: number, depth = 8, colour = 2, rest = '\0\0\0') =>
  pngChunk('IHDR', join(u32be(widthPx), u32be(heightPx), depth, colour, rest));
const withHeader = (...ihdr: Parameters<typeof header>) =>
  join(signature, header(...ihdr), idat, iend);
const withChunk = (type: string, data: Uint8Array | string = '') =>
  afterIhdr(png, pngChunk(type, data));
const atEnd = (type: string, data: Uint8Array | string = '') =>
  join(beforeIend, pngChunk(type, data), iend);
const exif = (value: number, prefix = '') =>
  pngChunk('eXIf', join(prefix, tiffOrientation(value, 'MM')));
const actl = join(u32be(1), u32be(0));

/** A file of 8×1 px with a sample in tRNS: once for grey, three times for colours. */
function transparent(bits: number, type: 0 | 2, value: number): Buffer {
  const sample = join(value >>> 8, value & 0xff);
  const trns = pngChunk('tRNS', type === 0 ? sample : join(sample, sample, sample));
  return join(signature, header(8, 1, bits, type), trns, pngChunk('IDAT', 'x'), iend);
}

test('a bare PNG can be passed through', () => {
  const expected = { format: 'png', widthPx: 36, heightPx: 28, isPlain: true };
  expect(verdictOn(png)).toEqual({ ...expected, ...plainStill });
});

const harmless = { gAMA: 4, cHRM: 32, sRGB: 1, sBIT: 3, bKGD: 6, hIST: 2, pHYs: 9, tRNS: 6 };
test.each(Object.entries(harmless))(
  'a PNG with %s can be passed through, unless the chunk is too long',
  (type, bytes) => {
    expect(headerOf(withChunk(type, Buffer.alloc(bytes))).isClean).toBe(true);
    expect(headerOf(withChunk(type, Buffer.alloc(600))).isClean).toBe(false);
  },
);

test.each('tEXt zTXt iTXt eXIf iCCP tIME acTL fcTL fdAT cICP sPLT prVt'.split(' '))(
  'a PNG with %s is never passed through, whether before or after its image data',
  (type) => {
    expect(headerOf(withChunk(type, 'x')).isClean).toBe(false);
    expect(headerOf(atEnd(type, 'x')).isClean).toBe(false);
  },
);

testVerdicts(
  'a PNG that can be passed through',
  { isClean: true },
  {
    'the larger of 1 bit': transparent(1, 0, 1),
    'the largest of 4 bits': transparent(4, 0, 0x0f),
    'the largest of 8 bits': transparent(8, 2, 0xff),
    'the largest of 16 bits': transparent(16, 0, 0xffff),
  },
);

testVerdicts(
  'a PNG that is read, but never passed through',
  { isClean: false, orientation: 1 },
  {
    'more than 1 bit': transparent(1, 0, 2),
    'more than 4 bits': transparent(4, 0, 0x10f),
    'more than 8 bits': transparent(8, 2, 0x100),
    'a byte after IEND': join(png, 0),
    'a byte in IEND': join(beforeIend, pngChunk('IEND', 'x')),
    'a wrong CRC of IEND': withWrongCrc(png, 'IEND'),
    'eXIf after the image data': join(beforeIend, exif(6), iend),
  },
);

test('a PNG is an APNG if it has an acTL before its image data', () => {
  expect(headerOf(withChunk('acTL', actl)).format).toBe('apng');
  expect(headerOf(atEnd('acTL', actl)).format).toBe('png');
});

testVerdicts(
  'a PNG with an orientation',
  { orientation: 6 },
  {
    'the first eXIf that is a TIFF block': afterIhdr(png, exif(3, 'Exif\0\0'), exif(6), exif(8)),
    'eXIf with a wrong CRC': withWrongCrc(afterIhdr(png, exif(6)), 'eXIf'),
  },
);

// Deflate expands one byte to at most 1032.
test.each([
  ['too few for grey', header(1032, 1000, 8, 0), [500, 499], true],
  ['enough for grey', header(1032, 1000, 8, 0), [500, 500], false],
  ['too few for 16 bits of RGBA', header(1032, 1000, 16, 6), [7999], true],
  ['enough for 1 bit', header(1032, 1000, 1, 0), [125], false],
  ['too few when interlaced', header(1032, 1000, 8, 0, '\0\0\x01'), [999], true],
] as const)('the image data of a still PNG are %s', (_, ihdr, idats, isTooShort) => {
  const chunks = idats.map((bytes) => pngChunk('IDAT', Buffer.alloc(bytes)));
  const { dataError } = headerOf(join(signature, ihdr, ...chunks, iend));
  expect(dataError).toEqual(isTooShort ? expect.stringMatching(/^PNG: \d+ bytes of/) : undefined);
});

testVerdicts('a corrupt PNG', 'corrupt', {
  'no width': withHeader(0, 28),
  'no height': withHeader(36, 0),
  'a width beyond 31 bit': withHeader(0x8000_0000, 28),
  'a bit depth of 3': withHeader(36, 28, 3),
  'a colour type of 1': withHeader(36, 28, 8, 1),
  'an unknown compression': withHeader(36, 28, 8, 2, '\x01\0\0'),
  'an unknown filter': withHeader(36, 28, 8, 2, '\0\x01\0'),
  'an unknown interlace': withHeader(36, 28, 8, 2, '\0\0\x02'),
  'a palette image without palette': withHeader(36, 28, 8, 3),
  'a wrong CRC of IHDR': withWrongCrc(withHeader(36, 28), 'IHDR'),
  'IHDR not first': join(signature, pngChunk('gAMA', '\0\0\0\0'), png.subarray(8)),
  'IHDR twice': afterIhdr(png, header(36, 28)),
  'no IDAT': join(png.subarray(0, 33), iend),
  'IDAT in two places': join(atEnd('gAMA', '\0\0\0\0').subarray(0, -12), pngChunk('IDAT'), iend),
  'an invalid chunk type': withChunk('ab1d'),
  'a chunk past the end': join(beforeIend, u32be(0x7fff_ffff), 'tEXt'),
});

test('a PNG with cICP is neither plain nor clean, and has its code points', () => {
  const { codePoints, isPlain, isClean } = headerOf(withChunk('cICP', '\x0c\x0d\0\x01'));
  expect({ codePoints, isPlain, isClean }).toEqual({
    codePoints: { primaries: 12, transfer: 13 },
    isPlain: false,
    isClean: false,
  });
});

describe('the gamma of a PNG', () => {
  test.each([
    ['png-gamma/wuffs__red-blue-gradient.gamma1dot8.png', 0.55556],
    ['png-16/codeccorpus__g25n0g16.png', 2.5],
    ['png-gamma/wuffs__red-blue-gradient.vanilla.png', undefined],
    // A profile, sRGB or cICP has precedence (PNG 3rd edition §4.3).
    ['png-gamma/wuffs__red-blue-gradient.dcip3d65-no-chrm-no-gama.png', undefined],
    ['png-palette/wuffs__bricks-dither.png', undefined],
    ['icc-wide/imagepng__cicp_pq.png', undefined],
  ])('%s is %s', (file, gamma) => {
    expect(headerOf(corpusFile(file)).gamma).toBe(gamma);
  });

  test('is ignored if libpng ignores its chunk', () => {
    const linear = withChunk('gAMA', '\0\x01\x86\xa0');
    expect(headerOf(linear).gamma).toBe(1);
    const ignored = [withChunk('gAMA', '\0\0\0\0'), withChunk('gAMA', '\0\x01\x86')];
    for (const file of [...ignored, withWrongCrc(linear, 'gAMA')]) {
      expect(headerOf(file).gamma).toBeUndefined();
    }
  });
});
