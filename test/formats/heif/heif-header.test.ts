import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { join, type Part, put, u16be, u32be } from '../containers.ts';
import { corpusFile, headerOf, plainStill, testVerdicts, verdictOn } from '../header-of.ts';

const avif = corpusFile('avif/libavif__white_1x1.avif');
const sofa = corpusFile('avif/libavif__sofa_grid1x5_420.avif');
const cut = corpusFile('avif/libavif__clap_irot_imir_non_essential.avif');
const ftyp = avif.subarray(0, 32);
const meta = avif.subarray(32);

/** Overwrites bytes at an offset from the only occurrence of an ASCII text. */
const edit = (file: Buffer, text: string, at: number, ...bytes: readonly Part[]) =>
  put(file, file.indexOf(text, 0, 'latin1') + at, ...bytes);

const branded = (brand: string) => edit(avif, 'ftyp', 4, brand);
const ofCodec = (brand: string, codec: string) => edit(branded(brand), 'av01', 0, codec);
const withGrid = (at: number, ...bytes: number[]) => edit(sofa, 'mdat', 4 + at, ...bytes);
/** `iloc` has 14 bytes per item, of which the last 4 are the length; the grid is the first item. */
const withLength = (item: number, length: number) =>
  edit(sofa, 'iloc', 12 + 14 * item - 4, u32be(length));

test('never passes an AVIF through', () => {
  const size = { widthPx: 1, heightPx: 1 };
  expect(verdictOn(avif)).toEqual({
    ...{ format: 'avif', ...size, hasLoss: true },
    ...{ ...plainStill, isClean: false },
  });
});

test.each([
  ['fixtures/corpus/avif/libavif__kodim03_yuv420_8bpc.avif', true],
  ['fixtures/sample-colours/grey-limited.avif', false],
  ['fixtures/heic/says-avif.heic', true],
])('%s has been encoded with loss: %s', (file, hasLoss) => {
  expect(verdictOn(readFileSync(file))).toMatchObject({ hasLoss });
});

test('reads a HEIF box with a 64-bit length', () => {
  const long = join(u32be(1), 'meta', u32be(0), u32be(8 + meta.readUInt32BE(0)));
  expect(verdictOn(join(ftyp, long, meta.subarray(8)))).toEqual(verdictOn(avif));
});

// The compatible brands contain `avif`, so the major brand can be any of these.
const av1Brands = ['mif1', 'msf1', 'avis', 'heic', 'heix', 'hevc', 'hevx', 'mp42', 'miaf', 'qt  '];
testVerdicts(
  'an AVIF of any brand',
  { format: 'avif' },
  Object.fromEntries(av1Brands.map((brand) => [brand, branded(brand)])),
);
testVerdicts(
  'a HEIC of any brand',
  { format: 'heic' },
  Object.fromEntries(['mif1', 'avif', 'heic'].map((brand) => [brand, ofCodec(brand, 'hvc1')])),
);
/** File type box of the original length, so that offsets stay valid. */
const compatible = (brands: string) => join(u32be(32), 'ftypisom\0\0\0\0', brands, meta);
testVerdicts(
  'an AVIF by a compatible brand',
  { format: 'avif' },
  Object.fromEntries(
    ['avif', 'avis', 'heic', 'heix', 'mif1'].map((brand) => [
      brand,
      compatible(`iso8${brand}mp41miaf`),
    ]),
  ),
);
testVerdicts('a HEIF file that is not decoded', 'unsupported', {
  'other compatible brands': compatible('miafMA1Bhevcmsf1'),
  'a brand across two fields': compatible('xxavifxxiso8mp41'),
  'a brand after the file type box': put(compatible('iso8mp41\0\0\0\x08avif'), 0, u32be(24)),
  'a codec of neither format': ofCodec('mif1', 'vvc1'),
  'a file with only tracks': join(ftyp, '\0\0\0\x08moov'),
});

testVerdicts(
  'a HEIF file that is read',
  { widthPx: 1 },
  {
    'junk after the last box': join(avif, 'junk junk junk'),
    'zeros after the last box': join(avif, Buffer.alloc(8)),
    'a truncated box after the last box': join(avif, '\0\0\xff\xfffree'),
  },
);

test('a grid has its own size, one frame, and the pixels of its tiles', () => {
  expect(headerOf(sofa)).toMatchObject({ widthPx: 1024, heightPx: 770, frames: 1 });
  expect(headerOf(sofa)).not.toHaveProperty('codedPixels');
  const lower = edit(withGrid(6, 2, 104 + 10), 'ispe', 12, u32be(626));
  expect(headerOf(lower)).toMatchObject({ heightPx: 626, codedPixels: 1024 * 154 * 5 });
});

testVerdicts('a corrupt HEIF file', 'corrupt', {
  'a grid with a tile that does not exist': edit(sofa, 'dimg', 8, u16be(9)),
  'a grid with an empty tile': withLength(4, 0),
  'a grid that is empty': withLength(1, 0),
  'a grid that ends early': withLength(1, 7),
  'a grid of more rows than tiles': withGrid(2, 5),
  'a grid of more columns than tiles': withGrid(3, 1),
  'a picture that the tiles do not fill': withGrid(6, 3, 3),
  'a tile beyond the edge': withGrid(6, 2, 104),
  'no meta box': join(ftyp, '\0\0\0\x08mdat'),
  'a box of size 7 before meta': join(ftyp, '\0\0\0\x07free'),
  'a meta box past the end': edit(avif, 'meta', -4, 0, 0xff),
  'a second meta box, which libheif would use': join(avif, meta),
  'a second meta box after another box': join(avif, '\0\0\0\x08free', meta),
  'no primary item': edit(avif, 'pitm', 0, 0x78),
  'a primary item that does not exist': edit(avif, 'pitm', 8, 0, 9),
  'no item locations': edit(avif, 'iloc', 0, 0x78),
  'an item past the end of the file': edit(avif, 'iloc', 18, 0xff),
  'no properties': edit(avif, 'iprp', 0, 0x78),
  'no size': edit(avif, 'ispe', 0, 0x78),
  'an aperture whose width has a denominator of 0': edit(cut, 'clap', 4, u32be(8), u32be(0)),
  'a width of 0': edit(avif, 'ispe', 8, u32be(0)),
});
