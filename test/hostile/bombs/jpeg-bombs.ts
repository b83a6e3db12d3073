import { join, jpegSegment, tiffOrientation } from '../../formats/containers.ts';
import * as ways from '../ways.ts';
import { type Bomb, bomb, LARGEST_BYTES, repeat } from './bomb.ts';
import { exifInCircles, exifOfHugeCounts, exifOfOverlaps, iccOf } from './metadata-bombs.ts';

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

interface Shape {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly components?: number;
  readonly bitDepth?: number;
}

const PHOTO: Shape = { widthPx: 4_000, heightPx: 2_000 };
const HUGE: Shape = { widthPx: 10_000, heightPx: 10_000 };
const TINY: Shape = { widthPx: 16, heightPx: 16 };

function u16(value: number): Buffer {
  return join(value >>> 8, value & 0xff);
}

function frame(code: number, shape: Shape): Buffer {
  const { widthPx, heightPx, components = 1, bitDepth = 8 } = shape;
  const list = Array.from({ length: components }, (_, index) => join(index + 1, 0x11, 0));
  return jpegSegment(code, join(bitDepth, u16(heightPx), u16(widthPx), components, ...list));
}

const quantization = jpegSegment(marker.quantization, join(0, Buffer.alloc(64, 1)));

/** A table of one code, a single 0, for this symbol (T.81 B.2.4.2). */
function huffman(kind: 'DC' | 'AC', symbol: number): Buffer {
  const counts = join(1, Buffer.alloc(15));
  return jpegSegment(marker.huffman, join(kind === 'DC' ? 0 : 0x10, counts, symbol));
}

/** End of a run of 2^14 blocks and more, told by 14 bits (T.81 G.1.2.2). */
const LONG_RUN = 0xe0;

function scan(components: number, spectrum: readonly [number, number], bits = 0): Buffer {
  const list = Array.from({ length: components }, (_, index) => join(index + 1, 0));
  return jpegSegment(marker.scan, join(components, ...list, ...spectrum, bits));
}

function blocksOf({ widthPx, heightPx }: Shape): number {
  return Math.ceil(widthPx / 8) * Math.ceil(heightPx / 8);
}

/** One grey: a code of one bit for each block's DC and AC, all of them 0. */
function flat(shape: Shape, ...segments: readonly Uint8Array[]): Buffer {
  const { components = 1 } = shape;
  return join(
    SOI,
    ...segments,
    quantization,
    frame(marker.baseline, shape),
    huffman('DC', 0),
    huffman('AC', 0),
    scan(components, [0, 63]),
    Buffer.alloc(Math.ceil((blocksOf(shape) * 2 * components) / 8)),
    EOI,
  );
}

/** A progressive file: the DC, then the scans, each of which is over in a few runs of blocks. */
function progressive(shape: Shape, scans: readonly Uint8Array[]): Buffer {
  const runs = Buffer.alloc(Math.ceil((Math.ceil(blocksOf(shape) / 2 ** 14) * 15) / 8));
  return join(
    SOI,
    quantization,
    frame(marker.progressive, shape),
    huffman('DC', 0),
    scan(1, [0, 0]),
    Buffer.alloc(Math.ceil(blocksOf(shape) / 8)),
    huffman('AC', LONG_RUN),
    ...scans.flatMap((header) => [header, runs]),
    EOI,
  );
}

/** Every scan that one component can have without a repetition: each coefficient, bit by bit. */
function everyScan(): Buffer[] {
  return Array.from({ length: 63 * 14 }, (_, index) => {
    const low = 13 - Math.floor(index / 63);
    const coefficient = 1 + (index % 63);
    return scan(1, [coefficient, coefficient], (low === 13 ? 0 : (low + 1) << 4) | low);
  });
}

function sameScan(times: number): Buffer[] {
  return Array.from({ length: times }, () => scan(1, [1, 63]));
}

function arithmetic(code: number, shape: Shape, scans: readonly Uint8Array[]): Buffer {
  return join(SOI, quantization, frame(code, shape), ...scans, Buffer.alloc(16), EOI);
}

const large = [ways.stillSmall, ways.jpeg];
const app = (code: number, data: Uint8Array | string): Buffer => jpegSegment(0xe0 + code, data);
const exif = (tiff: Uint8Array): Buffer => app(1, join('Exif\0\0', tiff));

/** A profile in pieces of 64 KiB, of which there may be 255 (ICC.1:2022 annex B.4). */
function profile(bytes: Buffer): Buffer[] {
  const count = Math.ceil(bytes.length / 65_000);
  return Array.from({ length: count }, (_, index) =>
    app(
      2,
      join('ICC_PROFILE\0', index + 1, count, bytes.subarray(index * 65_000).subarray(0, 65_000)),
    ),
  );
}

export const jpegBombs: readonly Bomb[] = [
  bomb(
    'says 65535×65535',
    ways.everyWay,
    () => flat({ ...TINY }, frame(marker.baseline, { widthPx: 65_535, heightPx: 65_535 })),
    'refused unseen',
  ),
  bomb(
    'says 10000×10000 and holds nothing',
    large,
    () =>
      join(
        SOI,
        quantization,
        frame(marker.baseline, HUGE),
        huffman('DC', 0),
        huffman('AC', 0),
        scan(1, [0, 63]),
        EOI,
      ),
    'refused',
  ),
  bomb('100 million px', large, () => flat(HUGE)),
  bomb('100 million px of four components', large, () => flat({ ...HUGE, components: 4 })),
  bomb('65500×1526', large, () => flat({ widthPx: 65_500, heightPx: 1_526 })),
  bomb('882 scans of 8 million px', large, () => progressive(PHOTO, everyScan())),
  bomb('882 scans of 100 million px', [ways.stillSmall], () => progressive(HUGE, everyScan())),
  bomb('18 000 times the same scan of 8 million px', [ways.stillSmall], () =>
    progressive(PHOTO, sameScan(18_000)),
  ),
  bomb('18 000 times the same scan of 256 px', large, () => progressive(TINY, sameScan(18_000))),
  bomb('arithmetic coding, 100 million px of next to no data', large, () =>
    arithmetic(marker.arithmetic, { ...HUGE, components: 3 }, [scan(3, [0, 63])]),
  ),
  bomb('arithmetic coding, 500 scans of 8 million px', [ways.stillSmall], () =>
    arithmetic(marker.progressiveArithmetic, PHOTO, [
      scan(1, [0, 0]),
      ...everyScan().slice(0, 500),
    ]),
  ),
  bomb('12 bit', large, () => flat({ ...TINY, bitDepth: 12 }), 'refused unseen'),
  bomb(
    'lossless',
    large,
    () => join(SOI, frame(marker.lossless, TINY), scan(1, [1, 0]), EOI),
    'refused unseen',
  ),
  bomb(
    'a height that a later marker tells',
    large,
    () =>
      join(
        flat({ ...TINY, heightPx: 0 }).subarray(0, -2),
        jpegSegment(marker.lines, u16(65_535)),
        EOI,
      ),
    'refused unseen',
  ),
  bomb(
    'a second frame, which is huge',
    ways.everyWay,
    () => join(flat(TINY).subarray(0, -2), frame(marker.baseline, HUGE), scan(1, [0, 63]), EOI),
    'refused unseen',
  ),
  bomb('a second image, which is huge, behind the first', ways.everyWay, () =>
    join(flat(TINY), flat({ widthPx: 65_500, heightPx: 65_500 }).subarray(0, 4096)),
  ),
  bomb('a restart after each of 100 million px', large, () => {
    const shape = { widthPx: 10_000, heightPx: 10_000 };
    const restarts = Array.from({ length: 8 }, (_, index) => join(0, 0xff, 0xd0 + index));
    const cut = flat(shape).length - Math.ceil((blocksOf(shape) * 2) / 8) - 2;
    return join(
      flat(shape, jpegSegment(marker.restart, u16(1))).subarray(0, cut + 6),
      repeat(join(...restarts), Math.floor(blocksOf(shape) / 8) * 24),
      0,
      EOI,
    );
  }),
  bomb('restarts in the wrong order', ways.everyWay, () =>
    join(
      flat({ widthPx: 64, heightPx: 64 }, jpegSegment(marker.restart, u16(1))).subarray(0, -18),
      repeat(join(0, 0xff, 0xd7), 64 * 3),
      EOI,
    ),
  ),
  bomb('19 000 empty EXIF segments', large, () =>
    flat(TINY, repeat(exif(Buffer.alloc(0)), 19_000 * 10)),
  ),
  bomb('19 000 comments of 2.6 kB', large, () =>
    flat(TINY, repeat(jpegSegment(0xfe, Buffer.alloc(2_600)), 19_000 * 2_604)),
  ),
  bomb('19 000 Huffman tables', large, () =>
    flat(TINY, repeat(huffman('AC', 1), 19_000 * huffman('AC', 1).length)),
  ),
  bomb('19 000 restart intervals', large, () =>
    flat(TINY, repeat(jpegSegment(marker.restart, u16(0)), 19_000 * 6)),
  ),
  bomb(
    '400 000 segments',
    large,
    () => flat(TINY, repeat(jpegSegment(0xe5, ''), 400_000 * 4)),
    'refused unseen',
  ),
  bomb('50 MB of fill bytes', large, () =>
    join(SOI, Buffer.alloc(LARGEST_BYTES, 0xff), flat(TINY).subarray(2)),
  ),
  bomb('50 MB of stuffed zeros', large, () =>
    join(flat(TINY).subarray(0, -2), repeat(join(0xff, 0), LARGEST_BYTES), EOI),
  ),
  bomb('50 MB of junk before the image', large, () =>
    join(SOI, repeat(join(0, 1, 2, 3), LARGEST_BYTES), flat(TINY).subarray(2)),
  ),
  bomb('50 MB of stuffed zeros before the image', large, () =>
    join(SOI, repeat(join(0xff, 0), LARGEST_BYTES), flat(TINY).subarray(2)),
  ),
  bomb('a profile of 16 MB', large, () =>
    flat(TINY, ...profile(iccOf(1000, 16_000_000, 7_900_000))),
  ),
  bomb('a profile of 255 pieces, one of which is missing', large, () =>
    flat(TINY, ...profile(iccOf(10, 16_000_000, 100)).slice(1)),
  ),
  bomb('EXIF in circles', large, () => flat(TINY, exif(exifInCircles())), 'served'),
  bomb('EXIF of huge counts', large, () => flat(TINY, exif(exifOfHugeCounts()))),
  bomb('EXIF of 1000 overlapping values', large, () => flat(TINY, exif(exifOfOverlaps(65_000)))),
  bomb('turned, and as wide as can be', large, () =>
    flat({ widthPx: 65_500, heightPx: 1_526 }, exif(tiffOrientation(6))),
  ),
];
