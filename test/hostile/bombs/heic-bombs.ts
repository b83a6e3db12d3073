import { gridOf, HEIC, heicSample } from '../../support/images/heic-samples.ts';
import {
  createHeif,
  EXTENTS_OUTSIDE,
  type HeifItem,
  imageSize,
  takeApart,
} from '../../support/images/heif-file.ts';
import * as ways from '../ways.ts';
import { type Bomb, bombs, forEach } from './bomb.ts';

/** The coded image of a sample, and its properties but for its size. */
function coded(name: string): HeifItem {
  return takeApart(heicSample(name), 'ispe');
}

/** The same, saying that it has a size. */
function saying(name: string, widthPx: number, heightPx: number): HeifItem {
  const { properties, ...rest } = coded(name);
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties] };
}

/** A grid that uses one tile of 96×64 px again and again. */
function gridOfOne(rows: number, columns: number, size: readonly [number, number]): Buffer {
  const ids = Array.from({ length: rows * columns }, () => 2);
  return createHeif([gridOf(rows, columns, size, ids), saying('tile-0.heic', 96, 64)], HEIC);
}

const large = [ways.stillSmall, ways.jpeg];

export const heicBombs: readonly Bomb[] = [
  ...bombs('refused unseen', ways.everyWay, {
    'a grid of 256×256 tiles': () => gridOfOne(256, 256, [96 * 256, 64 * 256]),
    'a grid of 120×120 tiles': () => gridOfOne(120, 120, [96 * 120, 64 * 120]),
    'a grid of 256×256 tiles, 64×64 in all': () => gridOfOne(256, 256, [64, 64]),
    'a size of 4 thousand million': () =>
      createHeif([saying('tile-0.heic', 0xffff_ffff, 0xffff_ffff)], HEIC),
    'a grid of itself': () => createHeif([gridOf(1, 1, [96, 64], [1])], HEIC),
    ...forEach(
      EXTENTS_OUTSIDE,
      ([offset, length]) => `an extent of ${length} bytes at ${offset}`,
      ([offset, length]) =>
        createHeif([saying('tile-0.heic', 96, 64)], {
          ...HEIC,
          extents: [[offset, length]],
        }),
    ),
    '60 000 extents over the same megabytes': () => {
      const item = saying('tile-0.heic', 96, 64);
      const data = Buffer.concat([item.data, Buffer.alloc(8 * 2 ** 20)]);
      const extents = Array.from({ length: 60_000 }, () => [0n, BigInt(data.length)] as const);
      return createHeif([{ ...item, data }], { ...HEIC, extents });
    },
  }),
  ...bombs('refused', large, {
    '96×64 that says 10000×10000': () => createHeif([saying('tile-0.heic', 10_000, 10_000)], HEIC),
    '8000×8000 that says 16×16': () => createHeif([saying('flat-8000.heic', 16, 16)], HEIC),
    'a grid of tiles of 8000×8000 that say 64×64': () =>
      createHeif([gridOf(1, 3, [192, 64], [2, 2, 2]), saying('flat-8000.heic', 64, 64)], HEIC),
  }),
  ...bombs('any', large, {
    '8000×8000': () => heicSample('flat-8000.heic'),
  }),
  ...bombs('in time', large, {
    'a grid of 50×50 tiles': () => gridOfOne(50, 50, [96 * 50, 64 * 50]),
  }),
];
