import { afterSoi, join, jpegSegment, tiffOrientation, u16be } from '../../formats/containers.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, fill, LARGEST_BYTES, times } from './bomb.ts';
import { cyclicExif, iccOf } from './metadata-bombs.ts';

const SOI = join(0xff, 0xd8);
const EOI = join(0xff, 0xd9);

/** Second bytes of the markers of ITU-T T.81, table B.1. */
const marker = {
  baseline: 0xc0,
  progressive: 0xc2,
  lossless: 0xc3,
  arithmetic: 0xc9,
  progressiveArithmetic: 0xca,
  huffman: 0xc4,
  scan: 0xda,
  quantization: 0xdb,
  lines: 0xdc,
  restart: 0xdd,
} as const;

/** Size, components and bits of each; by default one component of 8 bits. */
type Shape = readonly [widthPx: number, heightPx: number, components?: number, bitDepth?: number];

const PHOTO: Shape = [4_000, 2_000];
const HUGE: Shape = [10_000, 10_000];
const TINY: Shape = [16, 16];

function frame(code: number, [widthPx, heightPx, components = 1, bitDepth = 8]: Shape): Buffer {
  const list = Array.from({ length: components }, (_, index) => join(index + 1, 0x11, 0));
  return jpegSegment(code, join(bitDepth, u16be(heightPx), u16be(widthPx), components, ...list));
}

const quantization = jpegSegment(marker.quantization, join(0, Buffer.alloc(64, 1)));

/** A table with one code, 0, for a symbol (T.81 B.2.4.2). */
const huffman = (kind: 'DC' | 'AC', symbol: number): Buffer =>
  jpegSegment(marker.huffman, join(kind === 'DC' ? 0 : 0x10, 1, Buffer.alloc(15), symbol));

/** End of a run of at least 2^14 blocks, with 14 extra bits (T.81 G.1.2.2). */
const LONG_RUN = 0xe0;

function scan(components: number, spectrum: readonly [number, number], bits = 0): Buffer {
  const list = Array.from({ length: components }, (_, index) => join(index + 1, 0));
  return jpegSegment(marker.scan, join(components, ...list, ...spectrum, bits));
}

const blocksOf = ([widthPx, heightPx]: Shape): number =>
  Math.ceil(widthPx / 8) * Math.ceil(heightPx / 8);

/** Headers of a grey file: one bit codes each block's DC and AC. */
const flatHead = (shape: Shape, ...segments: readonly Uint8Array[]): Buffer =>
  join(
    ...[SOI, ...segments, quantization, frame(marker.baseline, shape)],
    ...[huffman('DC', 0), huffman('AC', 0), scan(shape[2] ?? 1, [0, 63])],
  );

function flat(shape: Shape, ...segments: readonly Uint8Array[]): Buffer {
  const data = Buffer.alloc(Math.ceil((blocksOf(shape) * 2 * (shape[2] ?? 1)) / 8));
  return join(flatHead(shape, ...segments), data, EOI);
}

/** A progressive file: the DC, then scans of a few runs of blocks. */
function progressive(shape: Shape, scans: readonly Uint8Array[]): Buffer {
  const runs = Buffer.alloc(Math.ceil((Math.ceil(blocksOf(shape) / 2 ** 14) * 15) / 8));
  return join(
    ...[SOI, quantization, frame(marker.progressive, shape), huffman('DC', 0), scan(1, [0, 0])],
    ...[Buffer.alloc(Math.ceil(blocksOf(shape) / 8)), huffman('AC', LONG_RUN)],
    ...[...scans.flatMap((header) => [header, runs]), EOI],
  );
}

/** All different scans of one component: each coefficient, bit by bit. */
const everyScan = (): Buffer[] =>
  Array.from({ length: 63 * 14 }, (_, index) => {
    const low = 13 - Math.floor(index / 63);
    const coefficient = 1 + (index % 63);
    return scan(1, [coefficient, coefficient], (low === 13 ? 0 : (low + 1) << 4) | low);
  });

/** Codings with almost no data; the first scan has all coefficients. */
const arithmetic = (code: number, shape: Shape, ...scans: readonly Uint8Array[]): Buffer =>
  join(SOI, quantization, frame(code, shape), ...scans, Buffer.alloc(16), EOI);

const manyScans = (count: number): Buffer =>
  arithmetic(marker.progressiveArithmetic, PHOTO, scan(1, [0, 0]), ...everyScan().slice(0, count));

/** A profile in pieces of 64 KiB, at most 255 (ICC.1:2022 annex B.4). */
function profile(bytes: Buffer): Buffer[] {
  const count = Math.ceil(bytes.length / 65_000);
  return Array.from({ length: count }, (_, index) => {
    const piece = bytes.subarray(index * 65_000).subarray(0, 65_000);
    return jpegSegment(0xe2, join('ICC_PROFILE\0', index + 1, count, piece));
  });
}

const exif = (tiff: Uint8Array): Buffer => jpegSegment(0xe1, join('Exif\0\0', tiff));
const tiny = (...segments: readonly Uint8Array[]): Buffer => flat(TINY, ...segments);

export const jpegBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    'a declared size of 65535×65535': () => tiny(frame(marker.baseline, [65_535, 65_535])),
    'a huge second frame': () =>
      join(tiny().subarray(0, -2), frame(marker.baseline, HUGE), scan(1, [0, 63]), EOI),
  }),
  ...bombs('refused without a render', targets.stills, {
    '12 bit': () => flat([16, 16, 1, 12]),
    lossless: () => join(SOI, frame(marker.lossless, TINY), scan(1, [1, 0]), EOI),
    'a height in a later marker': () =>
      join(flat([16, 0]).subarray(0, -2), jpegSegment(marker.lines, u16be(65_535)), EOI),
    '882 scans of 8 million px': () => progressive(PHOTO, everyScan()),
    'arithmetic coding, 501 scans of 8 million px': () => manyScans(500),
  }),
  ...bombs('refused', targets.stills, {
    'a declared size of 10000×10000 without data': () => join(flatHead(HUGE), EOI),
  }),
  ...bombs('served', targets.stills, { 'cyclic EXIF': () => tiny(exif(cyclicExif())) }),
  ...bombs('in time', targets.stills, {
    'the maximum number of scans of 8 million px': () =>
      progressive(PHOTO, everyScan().slice(0, 498)),
    'the maximum number of scans of 100 million px': () =>
      progressive(HUGE, everyScan().slice(0, 39)),
    'arithmetic coding, the maximum number of scans of 8 million px': () => manyScans(498),
  }),
  ...bombs('any', targets.allTargets, {
    'a huge second image after the first': () =>
      join(tiny(), flat([65_500, 65_500]).subarray(0, 4096)),
  }),
  ...bombs('any', targets.stills, {
    '100 million px of four components': () => flat([10_000, 10_000, 4]),
    'the maximum width, rotated': () => flat([65_500, 1_526], exif(tiffOrientation(6))),
    'arithmetic coding, 100 million px in almost no data': () =>
      arithmetic(marker.arithmetic, [10_000, 10_000, 3], scan(3, [0, 63])),
    'a restart after each of 100 million px': () => {
      const restarts = Array.from({ length: 8 }, (_, index) => join(0, 0xff, 0xd0 + index));
      const data = times(Math.floor(blocksOf(HUGE) / 8), join(...restarts));
      return join(flatHead(HUGE, jpegSegment(marker.restart, u16be(1))), data, 0, EOI);
    },
    '19 000 Huffman tables': () => tiny(times(19_000, huffman('AC', 1))),
    '50 MB of junk before the image': () => afterSoi(tiny(), fill(LARGEST_BYTES, join(0, 1, 2, 3))),
    'a profile of 16 MB': () => tiny(...profile(iccOf(1000, 16_000_000, 7_900_000))),
  }),
];
