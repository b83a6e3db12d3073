import {
  alphaProperty,
  box,
  createHeif,
  fullBox,
  gridOf,
  type HeifItem,
  imageSize,
} from '../../support/images/heif-file.ts';

const TILE_PX = 64;
const SIZE = imageSize(TILE_PX, TILE_PX);

/** Properties before `ispe`: the maximum for one item. */
const PROPERTIES: readonly Buffer[] = Array.from({ length: 254 }, () => box('free'));

const repeat = <Value>(count: number, value: Value): Value[] => Array(count).fill(value);

const range = (count: number, first: number): number[] =>
  Array.from({ length: count }, (_, index) => first + index);

/** A coded image of 64×64; the main process does not parse its data. */
const coded = (...properties: readonly Uint8Array[]): HeifItem => ({
  type: 'av01',
  data: Buffer.alloc(16),
  properties: [...properties, SIZE],
});

const grid = (rows: number, tiles: readonly number[]): HeifItem =>
  gridOf(rows, rows, [rows * TILE_PX, rows * TILE_PX], tiles);

/** An overlay (ISO/IEC 23008-12 §6.6.2.2). */
const overlay = (images: readonly number[]): HeifItem => ({
  type: 'iovl',
  data: Buffer.alloc(16),
  properties: [SIZE],
  references: [['dimg', images]],
});

/** A file of one coded image, in extents of one byte, and a derived primary item. */
const inExtents = (extents: number, primary: HeifItem): Buffer =>
  createHeif([{ ...coded(), data: Buffer.alloc(extents) }, primary], {
    primary: 2,
    extents: range(extents, 64).map((at) => [BigInt(at), 1n]),
  });

/** An `auxC` of alpha with many bytes after its type. */
const longAlpha = (bytes: number): Buffer =>
  fullBox('auxC', 0, 0, 'urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0', Buffer.alloc(bytes));

/** An alpha plane of item 1 that is a grid of one tile, item 2. */
const gridPlane = (...properties: readonly Uint8Array[]): HeifItem => {
  const { references = [], ...plane } = grid(1, [2]);
  return {
    ...plane,
    properties: [...properties, SIZE, alphaProperty],
    references: [...references, ['auxl', [1]]],
  };
};

/** HEIF files with products of two counts, each within its own limit. */
export const heifTables: Readonly<Record<string, () => Buffer>> = {
  'a grid of 127×127 references to a tile of 60 000 extents': () =>
    inExtents(60_000, grid(127, repeat(127 ** 2, 1))),
  'an overlay of 60 000 references to an image of 60 000 extents': () =>
    inExtents(60_000, overlay(repeat(60_000, 1))),
  'a grid of 50×50 references to a tile of 255 properties': () =>
    createHeif([grid(50, repeat(50 ** 2, 2)), coded(...PROPERTIES)]),
  'a grid of 255×255 references to a tile of 255 properties': () =>
    createHeif([grid(255, repeat(255 ** 2, 2)), coded(...PROPERTIES)]),
  'a grid of 50×50 tiles of 255 properties each': () =>
    createHeif([grid(50, range(50 ** 2, 2)), ...repeat(50 ** 2, coded(...PROPERTIES))]),
  '19 000 references from an alpha plane of 255 properties': () =>
    createHeif([
      coded(),
      {
        ...coded(...PROPERTIES.slice(1), alphaProperty),
        references: repeat(19_000, ['auxl', [1]]),
      },
    ]),
  '19 000 references from an alpha plane with a type of 500 kB': () =>
    createHeif([
      coded(),
      { ...coded(longAlpha(500_000)), references: repeat(19_000, ['auxl', [1]]) },
    ]),
  '19 000 alpha planes that share a type of 500 kB': () => {
    const plane = { ...coded(longAlpha(500_000)), references: [['auxl', [1]] as const] };
    return createHeif([coded(), ...repeat(18_999, plane)]);
  },
  '9 000 alpha planes, each a grid of one tile': () =>
    createHeif([coded(), coded(), ...repeat(9_000, gridPlane())]),
  '2 000 alpha planes of 255 properties, each a grid of one tile of 255': () =>
    createHeif([
      coded(),
      coded(...PROPERTIES),
      ...repeat(2_000, gridPlane(...PROPERTIES.slice(1))),
    ]),
};
