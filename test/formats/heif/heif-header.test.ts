import { describe, expect, test } from 'vitest';
import { join, u32be } from '../containers.ts';
import { corpusFile, factsOf, plainStill, testCorrupt, verdictOn } from '../facts-of.ts';

const avif = corpusFile('avif/libavif__white_1x1.avif');

/** The file with bytes put in the place of an ASCII text, of which it has one. */
function edited(text: string, offset: number, ...values: readonly number[]): Buffer {
  const bytes = Buffer.from(avif);
  Buffer.from(values).copy(bytes, bytes.indexOf(text, 0, 'latin1') + offset);
  return bytes;
}

/** A file with an aperture, the width of which is given as numerator and denominator. */
function withAperture(width: Buffer): Buffer {
  const bytes = corpusFile('avif/libavif__clap_irot_imir_non_essential.avif');
  width.copy(bytes, bytes.indexOf('clap', 0, 'latin1') + 4);
  return bytes;
}

function branded(brand: string): Buffer {
  const bytes = Buffer.from(avif);
  bytes.write(brand, 8, 'latin1');
  return bytes;
}

test('an avif is never clean', () => {
  expect(verdictOn(avif)).toEqual({
    format: 'avif',
    widthPx: 1,
    heightPx: 1,
    ...plainStill,
    isClean: false,
  });
});

test('a box may tell its length in 64 bits', () => {
  const at = avif.indexOf('meta', 0, 'latin1') - 4;
  const lengthBytes = 8 + avif.readUInt32BE(at);
  const long = join(u32be(1), 'meta', u32be(0), u32be(lengthBytes));
  const bytes = join(avif.subarray(0, at), long, avif.subarray(at + 8));
  expect(verdictOn(bytes)).toEqual(verdictOn(avif));
});

test('size is after clap and irot, orientation is the decoder’s own affair', () => {
  expect(factsOf(corpusFile('avif/libavif__abc_color_irot_alpha_irot.avif'))).toMatchObject({
    widthPx: 256,
    heightPx: 512,
    orientation: 1,
  });
  expect(factsOf(corpusFile('avif/libavif__clap_irot_imir_non_essential.avif'))).toMatchObject({
    widthPx: 10,
    heightPx: 8,
  });
});

test('a grid is its own size and one frame', () => {
  expect(factsOf(corpusFile('avif/libavif__sofa_grid1x5_420.avif'))).toMatchObject({
    widthPx: 1024,
    heightPx: 770,
    frames: 1,
  });
});

test.each(['mif1', 'msf1', 'avis', 'heic', 'heix', 'hevc', 'hevx'])(
  'the brand %s may hold AV1 too',
  (brand) => {
    expect(verdictOn(branded(brand))).toMatchObject({ format: 'avif' });
  },
);

test.each(['mp42', 'miaf', 'qt  '])('the brand %s does not', (brand) => {
  expect(verdictOn(branded(brand))).toBe('unsupported');
});

test.each(['mif1', 'avif', 'heic'])('the codec counts, not the brand: HEVC in %s', (brand) => {
  const bytes = branded(brand);
  bytes.write('hvc1', bytes.indexOf('av01'), 'latin1');
  expect(verdictOn(bytes)).toMatchObject({ format: 'heic' });
});

test('a codec of neither is nothing we decode', () => {
  const bytes = branded('mif1');
  bytes.write('vvc1', bytes.indexOf('av01'), 'latin1');
  expect(verdictOn(bytes)).toBe('unsupported');
});

test('a file of tracks alone is nothing we decode', () => {
  expect(verdictOn(join(avif.subarray(0, 32), '\0\0\0\x08moov'))).toBe('unsupported');
});

describe('a grid', () => {
  const sofa = corpusFile('avif/libavif__sofa_grid1x5_420.avif');
  /** The file with bytes put behind the n-th occurrence of a text. */
  const withGrid = (offset: number, ...values: readonly number[]): Buffer => {
    const bytes = Buffer.from(sofa);
    Buffer.from(values).copy(bytes, bytes.indexOf('mdat', 0, 'latin1') + 4 + offset);
    return bytes;
  };
  /** Its `iloc` has 14 bytes an item, of which the last 4 are the length; the grid is the first. */
  const withLength = (item: number, length: number): Buffer => {
    const bytes = Buffer.from(sofa);
    bytes.writeUInt32BE(length, bytes.indexOf('iloc', 0, 'latin1') + 12 + 14 * item - 4);
    return bytes;
  };

  test('is five tiles of 1024×154', () => {
    expect(factsOf(sofa)).not.toHaveProperty('codedPixels');
    const cut = withGrid(6, 2, 104 + 10);
    cut.writeUInt32BE(626, cut.indexOf('ispe', 0, 'latin1') + 12);
    expect(factsOf(cut)).toMatchObject({ heightPx: 626, codedPixels: 1024 * 154 * 5 });
  });

  test.each([
    ['an empty tile', withLength(4, 0)],
    ['a grid that is empty', withLength(1, 0)],
    ['a grid that ends early', withLength(1, 7)],
    ['a row more than there are tiles', withGrid(2, 5)],
    ['a column more than there are tiles', withGrid(3, 1)],
    ['a picture that the tiles do not fill', withGrid(6, 3, 3)],
    ['a tile beyond the edge', withGrid(6, 2, 104)],
  ])('with %s is corrupt', (_, bytes) => {
    expect(verdictOn(bytes)).toBe('corrupt');
  });
});

test.each([
  ['junk', 'junk junk junk'],
  ['zeros', '\0\0\0\0\0\0\0\0'],
  ['a box past the end', '\0\0\xff\xfffree'],
])('%s behind the last box is no error', (_, tail) => {
  expect(factsOf(join(avif, tail)).widthPx).toBe(1);
});

testCorrupt([
  ['no meta box', join(avif.subarray(0, 32), '\0\0\0\x08mdat')],
  ['a box of size 7 before meta', join(avif.subarray(0, 32), '\0\0\0\x07free')],
  ['a meta box past the end', edited('meta', -4, 0, 0xff)],
  ['a second meta box, which libheif would go by', join(avif, avif.subarray(32))],
  ['a second meta box somewhere behind', join(avif, '\0\0\0\x08free', avif.subarray(32))],
  ['no primary item', edited('pitm', 0, 0x78)],
  ['a primary item that does not exist', edited('pitm', 8, 0, 9)],
  ['no item locations', edited('iloc', 0, 0x78)],
  ['an item past the end of the file', edited('iloc', 18, 0xff)],
  ['no properties', edited('iprp', 0, 0x78)],
  ['no size', edited('ispe', 0, 0x78)],
  ['an aperture of a width divided by 0', withAperture(join(u32be(8), u32be(0)))],
  ['a width of 0', edited('ispe', 8, 0, 0, 0, 0)],
]);
