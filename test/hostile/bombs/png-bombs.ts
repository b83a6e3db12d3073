import { constants, deflateRawSync } from 'node:zlib';
import { join, pngChunk, u32be } from '../../formats/containers.ts';
import * as ways from '../ways.ts';
import { type Bomb, bombs, fill, LARGEST_BYTES, MEBIBYTE, times } from './bomb.ts';
import { exifInCircles, exifOfHugeCounts, exifOfOverlaps, iccOf } from './metadata-bombs.ts';

/** Colour types (PNG 3rd edition §11.2.1). */
const GREY = 0;
const RGBA = 6;

interface Shape {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly bitDepth?: number;
  readonly colourType?: number;
  readonly isInterlaced?: boolean;
}

const TINY: Shape = { widthPx: 16, heightPx: 16 };

/** A PNG of this shape; chunks stand before the image data. */
function png(shape: Shape, data: Uint8Array, ...chunks: readonly Uint8Array[]): Buffer {
  const { bitDepth = 8, colourType = GREY, isInterlaced = false } = shape;
  const size = join(u32be(shape.widthPx), u32be(shape.heightPx));
  return join(
    '\x89PNG\r\n\x1a\n',
    pngChunk('IHDR', join(size, bitDepth, colourType, 0, 0, isInterlaced ? 1 : 0)),
    ...chunks,
    pngChunk('IDAT', data),
    pngChunk('IEND'),
  );
}

/** A zlib stream of that many zeros or a few more: a thousandth of them, and made at once. */
export function zeros(bytes: number): Buffer {
  const unit = deflateRawSync(Buffer.alloc(MEBIBYTE), {
    level: 9,
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const units = Math.ceil(bytes / MEBIBYTE);
  const sum = (units * MEBIBYTE) % 65_521; // Adler-32 (RFC 1950 §8) of zeros
  return join('\x78\xda', times(units, unit), '\x03\0', u32be(sum * 65_536 + 1));
}

/** A PNG of this shape whose pixels are all zeros. */
function blank(shape: Shape, ...chunks: readonly Uint8Array[]): Buffer {
  const { widthPx, heightPx, bitDepth = 8, colourType = GREY } = shape;
  const rowBytes = Math.ceil((widthPx * bitDepth * (colourType === RGBA ? 4 : 1)) / 8);
  // Interlaced: seven passes, each with a filter byte a row.
  return png(shape, zeros((rowBytes + 16) * heightPx), ...chunks);
}

const deep = { widthPx: 10_000, heightPx: 10_000, bitDepth: 16, colourType: RGBA };
const large = [ways.stillSmall, ways.png];
const text = (keyword: string, bytes: number): Buffer =>
  pngChunk('zTXt', join(keyword, '\0\0', zeros(bytes)));
const icc = (data: Uint8Array): Buffer => pngChunk('iCCP', join('icc\0\0', data));
const tiny = (...chunks: readonly Uint8Array[]): Buffer => blank(TINY, ...chunks);
const frame = (index: number): Buffer =>
  pngChunk('fcTL', join(u32be(index), u32be(16), u32be(16), '\0\0\0\0\0\0\0\0\0\x01\0\x64\0\0'));

const exif = (tiff: Uint8Array): Buffer => tiny(pngChunk('eXIf', tiff));
const apng = (frames: number, ...chunks: readonly Uint8Array[]): Buffer =>
  tiny(pngChunk('acTL', join(u32be(frames), u32be(0))), ...chunks);

export const pngBombs: readonly Bomb[] = [
  ...bombs('refused unseen', ways.everyWay, {
    'says 65535×65535': () => png({ widthPx: 65_535, heightPx: 65_535 }, zeros(1)),
    'says 2147483647×2147483647': () =>
      png({ widthPx: 2 ** 31 - 1, heightPx: 2 ** 31 - 1 }, zeros(1)),
  }),
  ...bombs('refused unseen', large, {
    'two million chunks': () => tiny(times(2_000_000, pngChunk('prVt'))),
    'says 10000×10000 and holds 1 MiB': () => png(deep, zeros(1)),
    'says 10000×10000, interlaced, and holds nothing': () =>
      png({ ...deep, isInterlaced: true }, Buffer.alloc(0)),
    '100 million px wide and 1 high': () => blank({ widthPx: 100_000_000, heightPx: 1 }),
    '100 million px high and 1 wide': () =>
      png({ widthPx: 1, heightPx: 100_000_000 }, zeros(200_000_000)),
  }),
  ...bombs('in time', [...large, ways.pngLarge], {
    'as many px high as can be, and 1 wide': () =>
      png({ widthPx: 1, heightPx: 262_144 }, zeros(2 * 262_144)),
    'as many px wide as can be, and 1 high': () => blank({ widthPx: 262_144, heightPx: 1 }),
  }),
  ...bombs('refused', [ways.stillSmall], {
    '40 GB of image data for 16×16': () => png(TINY, zeros(40_000 * MEBIBYTE)),
  }),
  ...bombs('in time', [ways.stillSmall], {
    '4 GB of image data for 2000×2000': () =>
      png({ widthPx: 2_000, heightPx: 2_000 }, zeros(3_900 * MEBIBYTE)),
  }),
  ...bombs('served', large, { 'EXIF in circles': () => exif(exifInCircles()) }),
  ...bombs('any', [...large, ways.jpeg], {
    '100 million px of 1 bit': () => blank({ widthPx: 10_000, heightPx: 10_000, bitDepth: 1 }),
  }),
  ...bombs('any', ways.everyWay, {
    'an APNG that says 4 thousand million frames': () => apng(0xffff_ffff, frame(0)),
  }),
  ...bombs('any', large, {
    '100 million px of 64 bit': () => blank(deep),
    '100 million px of 64 bit, interlaced': () => blank({ ...deep, isInterlaced: true }),
    '40 GB of text': () => tiny(text('a', 40_000 * MEBIBYTE)),
    '1000 texts of 7 MB': () => tiny(times(1000, text('a', 7 * MEBIBYTE))),
    '4 GB of profile': () => tiny(icc(zeros(4_000 * MEBIBYTE))),
    'a profile of a million tags': () => tiny(icc(deflate(iccOf(1_000_000, 4 * MEBIBYTE, 100)))),
    'a profile with a curve of 4 thousand million points': () =>
      tiny(icc(deflate(iccOf(10, 4096, 0xffff_ffff)))),
    '99 000 empty texts': () => tiny(times(99_000, pngChunk('tEXt', 'a\0'))),
    '99 000 texts of 480 bytes': () =>
      tiny(times(99_000, pngChunk('tEXt', join('a\0', Buffer.alloc(478, 97))))),
    'an APNG of 30 000 frames': () =>
      apng(30_000, join(...Array.from({ length: 30_000 }, (_, index) => frame(index)))),
    'EXIF of huge counts': () => exif(exifOfHugeCounts()),
    'EXIF of 17 000 overlapping megabytes': () => exif(exifOfOverlaps(MEBIBYTE - 64)),
    'gamma of nearly nothing': () => tiny(pngChunk('gAMA', u32be(1))),
    'gamma beyond all measure': () => tiny(pngChunk('gAMA', u32be(2 ** 31 - 1))),
    'chromaticities and density beyond all measure': () =>
      tiny(
        pngChunk('cHRM', Buffer.alloc(32, 0x7f)),
        pngChunk('pHYs', join(u32be(2 ** 31 - 1), u32be(1), 1)),
      ),
    '50 MB of noise as image data': () =>
      png({ widthPx: 6_000, heightPx: 6_000 }, fill(LARGEST_BYTES, Buffer.from('noise'))),
  }),
];

function deflate(bytes: Buffer): Buffer {
  return join('\x78\xda', deflateRawSync(bytes), '\0\0\0\0');
}
