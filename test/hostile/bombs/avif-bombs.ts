import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { join, put, u32be } from '../../formats/containers.ts';
import {
  alphaProperty,
  box,
  clap,
  createHeif,
  EXTENTS_OUTSIDE,
  extractImage,
  gridOf,
  type HeifChoices,
  type HeifItem,
  imageSize,
  imir,
  irot,
} from '../../support/images/heif-file.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, forEach, MEBIBYTE } from './bomb.ts';
import { heifTables } from './heif-tables.ts';

const squares = [10_000, 12_000, 16_384] as const;

/**
 * White squares of 10 000, 12 000 and 16 384 px, stored because libaom encodes them for up to 30 s: sharp 0.35.5,
 * `create` of three channels, `avif({ effort: 0, quality: 30 })`.
 */
const square = (edgePx: (typeof squares)[number]) =>
  readFileSync(`fixtures/flat-avif/${edgePx}.avif`);

const small = (edgePx: number): Promise<Buffer> =>
  sharp({ create: { width: edgePx, height: edgePx, channels: 3, background: '#c33' } })
    .avif({ effort: 0 })
    .toBuffer();

/** Changes the size in the `ispe` of a file. */
const withDeclaredSize = (avif: Buffer, edgePx: number) =>
  put(avif, avif.indexOf('ispe', 0, 'latin1') + 8, u32be(edgePx), u32be(edgePx));

/** An item with a file's image, a declared square size and more properties. */
function item(avif: Buffer, edgePx: number, ...more: Uint8Array[]): HeifItem {
  const { properties, ...rest } = extractImage(avif, 'ispe', 'colr');
  return { ...rest, properties: [imageSize(edgePx, edgePx), ...properties, ...more] };
}

const ids = (count: number, id: number): number[] => Array.from({ length: count }, () => id);

/** A grid (ISO/IEC 23008-12 §6.6.2.3.2) whose declared size differs from its own. */
const grid = (
  rows: number,
  edgePx: number,
  from: readonly number[],
  declaredPx = edgePx,
): HeifItem => ({
  ...gridOf(rows, rows, [edgePx, edgePx], from),
  properties: [imageSize(declaredPx, declaredPx)],
});

/** An overlay (§6.6.2.2.2) of copies of one image in the corner. */
const overlay = (edgePx: number, from: readonly number[]): HeifItem => ({
  ...grid(1, edgePx, from),
  type: 'iovl',
  data: join(
    ...[0, 1, Buffer.alloc(8, 0xff), u32be(edgePx), u32be(edgePx), Buffer.alloc(8 * from.length)],
  ),
});

/** A square grid of one small tile. */
const tiles = async (rows: number, tilePx: number, edgePx: number, declaredPx = edgePx) =>
  createHeif([
    grid(rows, edgePx, ids(rows * rows, 2), declaredPx),
    item(await small(tilePx), tilePx),
  ]);

/** 16×16 px with more properties. */
const tiny = async (...properties: readonly Uint8Array[]) =>
  createHeif([item(await small(16), 16, ...properties)]);

/** 16×16 px with other extents, or among other boxes. */
const tinyWith = async (choices: HeifChoices) => createHeif([item(await small(16), 16)], choices);

function nested(depth: number): Buffer {
  const heads = Array.from({ length: depth }, (_, at) => join(u32be(8 * (depth - at)), 'dinf'));
  return Buffer.concat(heads);
}

export const avifBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    '12000×12000': () => square(12_000),
    '16384×16384': () => square(16_384),
    'a size of 4 billion': async () => withDeclaredSize(await small(16), 0xffff_ffff),
  }),
  ...bombs('refused without a render', targets.stills, {
    'grids that contain each other': () => createHeif([2, 3, 1].map((id) => grid(1, 64, [id]))),
    'a huge image after a small one': async () => join(await small(16), square(10_000)),
    ...forEach(
      EXTENTS_OUTSIDE,
      ([offset, length]) => `an extent of ${length} bytes at ${offset}`,
      (extent) => tinyWith({ extents: [extent] }),
    ),
  }),
  ...bombs('any', [targets.stillSmall], {
    '10000×10000': () => square(10_000),
    'rotations of 100 million px': () =>
      createHeif([item(square(10_000), 10_000, ...Array(50).fill(irot(1)))]),
  }),
  ...bombs('any', targets.allTargets, {
    '80 apertures, rotations and flips': () =>
      tiny(...Array.from({ length: 80 }, () => [clap(16, 16), irot(1), imir(1)]).flat()),
  }),
  ...bombs('in time', [...targets.stills, targets.passthrough], heifTables),
  ...bombs('any', targets.stills, {
    ...forEach(
      squares,
      (edgePx) => `${edgePx}×${edgePx} declared as 16×16`,
      (edgePx) => withDeclaredSize(square(edgePx), 16),
    ),
    '16384×16384 declared as 4000×4000': () => withDeclaredSize(square(16_384), 4000),
    '16×16 declared as 10000×10000': async () => withDeclaredSize(await small(16), 10_000),
    '16×16 with an alpha plane of 16384×16384': async () =>
      createHeif([
        item(await small(16), 16),
        { ...item(square(16_384), 16, alphaProperty), references: [['auxl', [1]]] },
      ]),
    'alpha planes of each other': async () =>
      createHeif([
        { ...item(await small(16), 16), references: [['auxl', [2]]] },
        { ...item(await small(16), 16, alphaProperty), references: [['auxl', [1, 2]]] },
      ]),
    'a grid of 255×255 tiles of 64×64, declared as 64×64': () => tiles(255, 64, 64),
    'a grid of 150×150 tiles of 64×64': () => tiles(150, 64, 9_600),
    'a grid of one tile of 16384×16384': () =>
      createHeif([grid(1, 64, [2]), item(square(16_384), 64)]),
    'an overlay of 60 000 images': async () =>
      createHeif([overlay(2_000, ids(60_000, 2)), item(await small(64), 64)]),
    'an aperture of a four-billionth of a pixel': () =>
      tiny(box('clap', ...[1, 4e9, 1, 4e9, 0, 1, 0, 1].map(u32be))),
    '19 000 items': async () => {
      const one = item(await small(16), 16);
      const other = { ...one, data: Buffer.alloc(0), properties: [] };
      return createHeif([one, ...Array.from({ length: 18_999 }, () => other)]);
    },
    '60 000 extents of the same megabytes': async () => {
      const one = item(await small(16), 16);
      const data = Buffer.concat([one.data, Buffer.alloc(8 * MEBIBYTE)]);
      const extents = Array.from({ length: 60_000 }, () => [0n, BigInt(data.length)] as const);
      return createHeif([{ ...one, data }], { extents });
    },
    '100 000 nested boxes': () => tinyWith({ extraBoxes: [nested(100_000)] }),
  }),
];
