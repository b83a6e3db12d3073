import { constants, deflateRawSync } from 'node:zlib';
import { join, pngChunk, u32be } from '../../formats/containers.ts';
import * as ways from '../ways.ts';
import { type Bomb, bomb, LARGEST_BYTES, MEBIBYTE, repeat } from './bomb.ts';
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
function zeros(bytes: number): Buffer {
  const unit = deflateRawSync(Buffer.alloc(MEBIBYTE), {
    level: 9,
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const units = Math.ceil(bytes / MEBIBYTE);
  const sum = (units * MEBIBYTE) % 65_521; // Adler-32 (RFC 1950 §8) of zeros
  return join('\x78\xda', repeat(unit, units * unit.length), '\x03\0', u32be(sum * 65_536 + 1));
}

function blank(shape: Shape): Buffer {
  const { widthPx, heightPx, bitDepth = 8, colourType = GREY } = shape;
  const rowBytes = Math.ceil((widthPx * bitDepth * (colourType === RGBA ? 4 : 1)) / 8);
  // Interlaced: seven passes, each with a filter byte a row.
  return zeros((rowBytes + 8) * heightPx + 8 * heightPx);
}

const deep = { widthPx: 10_000, heightPx: 10_000, bitDepth: 16, colourType: RGBA };
const large = [ways.stillSmall, ways.png];
const text = (keyword: string, bytes: number): Buffer =>
  pngChunk('zTXt', join(keyword, '\0\0', zeros(bytes)));
const icc = (data: Uint8Array): Buffer => pngChunk('iCCP', join('icc\0\0', data));
const tiny = (...chunks: readonly Uint8Array[]): Buffer => png(TINY, blank(TINY), ...chunks);
const frame = (index: number): Buffer =>
  pngChunk('fcTL', join(u32be(index), u32be(16), u32be(16), '\0\0\0\0\0\0\0\0\0\x01\0\x64\0\0'));

export const pngBombs: readonly Bomb[] = [
  bomb(
    'says 65535×65535',
    ways.everyWay,
    () => png({ widthPx: 65_535, heightPx: 65_535 }, zeros(1)),
    'refused unseen',
  ),
  bomb(
    'says 2147483647×2147483647',
    ways.everyWay,
    () => png({ widthPx: 2 ** 31 - 1, heightPx: 2 ** 31 - 1 }, zeros(1)),
    'refused unseen',
  ),
  bomb('says 10000×10000 and holds 1 MiB', large, () => png(deep, zeros(1)), 'refused'),
  bomb('100 million px of 1 bit', [...large, ways.jpeg], () => {
    const shape = { widthPx: 10_000, heightPx: 10_000, bitDepth: 1 };
    return png(shape, blank(shape));
  }),
  bomb('100 million px of 64 bit', large, () => png(deep, blank(deep))),
  bomb('100 million px of 64 bit, interlaced', large, () =>
    png({ ...deep, isInterlaced: true }, blank(deep)),
  ),
  bomb('100 million px high and 1 wide', [ways.stillSmall, ways.pngLarge], () => {
    const shape = { widthPx: 1, heightPx: 100_000_000 };
    return png(shape, zeros(2 * shape.heightPx));
  }),
  bomb('100 million px wide and 1 high', [...large, ways.pngLarge], () => {
    const shape = { widthPx: 100_000_000, heightPx: 1 };
    return png(shape, blank(shape));
  }),
  bomb('40 GB of image data for 16×16', [ways.stillSmall], () =>
    png(TINY, zeros(40_000 * MEBIBYTE)),
  ),
  bomb('40 GB of text', large, () => tiny(text('a', 40_000 * MEBIBYTE))),
  bomb('1000 texts of 7 MB', large, () => {
    const part = text('a', 7 * MEBIBYTE);
    return tiny(repeat(part, 1000 * part.length));
  }),
  bomb('4 GB of profile', large, () => tiny(icc(zeros(4_000 * MEBIBYTE)))),
  bomb('a profile of a million tags', large, () =>
    tiny(icc(deflate(iccOf(1_000_000, 4 * MEBIBYTE, 100)))),
  ),
  bomb('a profile with a curve of 4 thousand million points', large, () =>
    tiny(icc(deflate(iccOf(10, 4096, 0xffff_ffff)))),
  ),
  bomb('99 000 empty texts', large, () => tiny(repeat(pngChunk('tEXt', 'a\0'), 99_000 * 14))),
  bomb('99 000 texts of 480 bytes', large, () =>
    tiny(repeat(pngChunk('tEXt', join('a\0', Buffer.alloc(478, 97))), 99_000 * 492)),
  ),
  bomb(
    'two million chunks',
    large,
    () => tiny(repeat(pngChunk('prVt'), 2_000_000 * 12)),
    'refused unseen',
  ),
  bomb('an APNG that says 4 thousand million frames', ways.everyWay, () =>
    tiny(pngChunk('acTL', join(u32be(0xffff_ffff), u32be(0))), frame(0)),
  ),
  bomb('an APNG of 30 000 frames', large, () =>
    tiny(
      pngChunk('acTL', join(u32be(30_000), u32be(0))),
      ...Array.from({ length: 30_000 }, (_, index) => frame(index)),
    ),
  ),
  bomb('EXIF in circles', large, () => tiny(pngChunk('eXIf', exifInCircles())), 'served'),
  bomb('EXIF of huge counts', large, () => tiny(pngChunk('eXIf', exifOfHugeCounts()))),
  bomb('EXIF of 17 000 overlapping megabytes', large, () =>
    tiny(pngChunk('eXIf', exifOfOverlaps(MEBIBYTE - 64))),
  ),
  bomb('gamma of nearly nothing', large, () => tiny(pngChunk('gAMA', u32be(1)))),
  bomb('gamma beyond all measure', large, () => tiny(pngChunk('gAMA', u32be(2 ** 31 - 1)))),
  bomb('chromaticities and density beyond all measure', large, () =>
    tiny(
      pngChunk('cHRM', Buffer.alloc(32, 0x7f)),
      pngChunk('pHYs', join(u32be(2 ** 31 - 1), u32be(1), 1)),
    ),
  ),
  bomb('50 MB of noise as image data', large, () =>
    png({ ...TINY, widthPx: 6_000, heightPx: 6_000 }, repeat(Buffer.from('noise'), LARGEST_BYTES)),
  ),
];

function deflate(bytes: Buffer): Buffer {
  return join('\x78\xda', deflateRawSync(bytes), '\0\0\0\0');
}
