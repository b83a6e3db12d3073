import {
  createHeif,
  EXTENTS_OUTSIDE,
  gridOf,
  HEIC,
  type HeifChoices,
  type HeifItem,
  heicSample,
  saying,
} from '../../support/images/heif-file.ts';
import * as ways from '../ways.ts';
import { type Bomb, bombs, forEach } from './bomb.ts';

const heic = (items: readonly HeifItem[], lies: HeifChoices = {}): Buffer =>
  createHeif(items, { ...HEIC, ...lies });
const tile = (): HeifItem => saying('tile-0.heic', 96, 64);

/** A square grid that repeats one tile of 96×64 px or a part of it. */
function gridOfOne(rows: number, size: readonly [number, number] = [96 * rows, 64 * rows]) {
  const ids = Array.from({ length: rows * rows }, () => 2);
  return heic([gridOf(rows, rows, size, ids), tile()]);
}

export const heicBombs: readonly Bomb[] = [
  ...bombs('refused unseen', ways.everyWay, {
    'a grid of 256×256 tiles': () => gridOfOne(256),
    'a grid of 256×256 tiles, 64×64 in all': () => gridOfOne(256, [64, 64]),
    'a size of 4 thousand million': () => heic([saying('tile-0.heic', 0xffff_ffff)]),
    'a grid of itself': () => heic([gridOf(1, 1, [96, 64], [1])]),
    ...forEach(
      EXTENTS_OUTSIDE,
      ([offset, length]) => `an extent of ${length} bytes at ${offset}`,
      (extent) => heic([tile()], { extents: [extent] }),
    ),
  }),
  ...bombs('refused', ways.stills, {
    '96×64 that says 10000×10000': () => heic([saying('tile-0.heic', 10_000)]),
    '8000×8000 that says 16×16': () => heic([saying('flat-8000.heic', 16)]),
    'a grid of tiles of 8000×8000 that say 64×64': () =>
      heic([gridOf(1, 3, [192, 64], [2, 2, 2]), saying('flat-8000.heic', 64)]),
  }),
  ...bombs('any', ways.stills, { '8000×8000': () => heicSample('flat-8000.heic') }),
  ...bombs('in time', ways.stills, { 'a grid of 50×50 tiles': () => gridOfOne(50) }),
];
