import {
  createHeif,
  EXTENTS_OUTSIDE,
  gridOf,
  HEIC,
  type HeifChoices,
  type HeifItem,
  heicSample,
  withDeclaredSize,
} from '../../support/images/heif-file.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, forEach } from './bomb.ts';

const heic = (items: readonly HeifItem[], choices: HeifChoices = {}): Buffer =>
  createHeif(items, { ...HEIC, ...choices });
const tile = (): HeifItem => withDeclaredSize('tile-0.heic', 96, 64);

/** A square grid that repeats one tile of 96×64 px or a part of it. */
function gridOfOne(rows: number, size: readonly [number, number] = [96 * rows, 64 * rows]) {
  const ids = Array.from({ length: rows * rows }, () => 2);
  return heic([gridOf(rows, rows, size, ids), tile()]);
}

export const heicBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    'a grid of 256×256 tiles': () => gridOfOne(256),
    'a grid of 256×256 tiles, declared as 64×64': () => gridOfOne(256, [64, 64]),
    'a size of 4 billion': () => heic([withDeclaredSize('tile-0.heic', 0xffff_ffff)]),
    'a grid that contains itself': () => heic([gridOf(1, 1, [96, 64], [1])]),
    ...forEach(
      EXTENTS_OUTSIDE,
      ([offset, length]) => `an extent of ${length} bytes at ${offset}`,
      (extent) => heic([tile()], { extents: [extent] }),
    ),
  }),
  ...bombs('refused', targets.stills, {
    '96×64 declared as 10000×10000': () => heic([withDeclaredSize('tile-0.heic', 10_000)]),
    '8000×8000 declared as 16×16': () => heic([withDeclaredSize('flat-8000.heic', 16)]),
    'a grid of tiles of 8000×8000 declared as 64×64': () =>
      heic([gridOf(1, 3, [192, 64], [2, 2, 2]), withDeclaredSize('flat-8000.heic', 64)]),
  }),
  ...bombs('any', targets.stills, { '8000×8000': () => heicSample('flat-8000.heic') }),
  ...bombs('in time', targets.stills, { 'a grid of 50×50 tiles': () => gridOfOne(50) }),
];
