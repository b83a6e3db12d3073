import { constants, deflateRawSync } from 'node:zlib';
import { join, pngChunk, u32be } from '../../formats/containers.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, fill, LARGEST_BYTES, MEBIBYTE, times } from './bomb.ts';
import { iccOf } from './metadata-bombs.ts';

/** Size, and the other fields of IHDR; by default 8 bits of grey. */
type Shape = readonly [widthPx: number, heightPx: number, kind?: string];

const ONE_BIT = '\x01\0\0\0\0';
const DEEP = '\x10\x06\0\0\0';
const DEEP_INTERLACED = '\x10\x06\0\0\x01';

/** A PNG with chunks before the image data. */
const png = (
  [widthPx, heightPx, kind = '\x08\0\0\0\0']: Shape,
  data: Uint8Array,
  ...chunks: readonly Uint8Array[]
): Buffer =>
  join(
    '\x89PNG\r\n\x1a\n',
    pngChunk('IHDR', join(u32be(widthPx), u32be(heightPx), kind)),
    ...chunks,
    ...[pngChunk('IDAT', data), pngChunk('IEND')],
  );

/** A zlib stream of at least this many zeros, in a thousandth of their size, without compressing them. */
export function zeros(bytes: number): Buffer {
  const options = { level: 9, finishFlush: constants.Z_FULL_FLUSH };
  const unit = deflateRawSync(Buffer.alloc(MEBIBYTE), options);
  const units = Math.ceil(bytes / MEBIBYTE);
  const sum = (units * MEBIBYTE) % 65_521; // Adler-32 (RFC 1950 §8) of zeros
  return join('\x78\xda', times(units, unit), '\x03\0', u32be(sum * 65_536 + 1));
}

/** A PNG whose pixels are all zero. */
function blank(shape: Shape, ...chunks: readonly Uint8Array[]): Buffer {
  const [widthPx, heightPx, kind] = shape;
  const pixelBits = kind === ONE_BIT ? 1 : kind === undefined ? 8 : 64;
  // Interlaced: seven passes, each with a filter byte a row.
  return png(shape, zeros((Math.ceil((widthPx * pixelBits) / 8) + 16) * heightPx), ...chunks);
}

const large = [targets.stillSmall, targets.png];
const tiny = (...chunks: readonly Uint8Array[]): Buffer => blank([16, 16], ...chunks);
const icc = (data: Uint8Array): Buffer => tiny(pngChunk('iCCP', join('icc\0\0', data)));
const deflate = (bytes: Buffer): Buffer => join('\x78\xda', deflateRawSync(bytes), '\0\0\0\0');

export const pngBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    'a declared size of 65535×65535': () => png([65_535, 65_535], zeros(1)),
    'a declared size of 2147483647×2147483647': () => png([2 ** 31 - 1, 2 ** 31 - 1], zeros(1)),
  }),
  ...bombs('refused without a render', large, {
    'a declared size of 10000×10000 with 1 MiB of data': () =>
      png([10_000, 10_000, DEEP], zeros(1)),
    'a declared size of 10000×10000, interlaced, without data': () =>
      png([10_000, 10_000, DEEP_INTERLACED], Buffer.alloc(0)),
    '100 million px wide and 1 high': () => blank([100_000_000, 1]),
    '100 million px high and 1 wide': () => png([1, 100_000_000], zeros(200_000_000)),
  }),
  ...bombs('in time', [...large, targets.pngLarge], {
    'the maximum height, 1 px wide': () => png([1, 262_144], zeros(2 * 262_144)),
    'the maximum width, 1 px high': () => blank([262_144, 1]),
  }),
  ...bombs('in time', [targets.stillSmall], {
    '4 GB of image data for 2000×2000': () => png([2_000, 2_000], zeros(3_900 * MEBIBYTE)),
  }),
  ...bombs('any', large, {
    '100 million px of 64 bit, interlaced': () => blank([10_000, 10_000, DEEP_INTERLACED]),
    '40 GB of image data for 16×16': () => png([16, 16], zeros(40_000 * MEBIBYTE)),
    '40 GB of text': () => tiny(pngChunk('zTXt', join('a\0\0', zeros(40_000 * MEBIBYTE)))),
    '4 GB of profile': () => icc(zeros(4_000 * MEBIBYTE)),
    'a profile with a curve of 4 billion points': () => icc(deflate(iccOf(10, 4096, 0xffff_ffff))),
    'extreme gamma, chromaticities and density': () =>
      tiny(
        pngChunk('gAMA', u32be(2 ** 31 - 1)),
        pngChunk('cHRM', Buffer.alloc(32, 0x7f)),
        pngChunk('pHYs', join(u32be(2 ** 31 - 1), u32be(1), 1)),
      ),
    '50 MB of noise as image data': () =>
      png([6_000, 6_000], fill(LARGEST_BYTES, Buffer.from('noise'))),
  }),
];
