import { readFileSync } from 'node:fs';
import { join, u32be } from '../../formats/containers.ts';
import { box, createHeif, type HeifItem, imageSize, takeApart } from './heif-file.ts';

/** Reads a file of `fixtures/heic`. */
export function heicSample(name: string): Buffer {
  return readFileSync(new URL(`../../../fixtures/heic/${name}`, import.meta.url));
}

/** Brands of a HEIC. */
export const HEIC = { brands: ['heic', 'mif1heicmiaf'] } as const;

/** Turns to the left, in quarters. */
export const irot = (quarterTurns: number): Buffer => box('irot', quarterTurns);

/** Swaps top and bottom (0), or left and right (1). */
export const imir = (axis: number): Buffer => box('imir', axis);

/** Cuts a size out of the middle, moved by so many pixels. */
export const clap = (width: number, height: number, x = 0, y = 0): Buffer =>
  box('clap', ...[width, 1, height, 1, x, 1, y, 1].map((field) => u32be(field >>> 0)));

/** A sample whose item has more properties, or others. */
export function withProperties(name: string, ...more: readonly Uint8Array[]): HeifItem {
  const item = takeApart(heicSample(name));
  return { ...item, properties: [...item.properties, ...more] };
}

/** An image grid of tiles that follow it. */
export function gridOf(
  rows: number,
  columns: number,
  [widthPx, heightPx]: readonly [number, number],
  tiles: readonly number[],
  ...more: readonly Uint8Array[]
): HeifItem {
  return {
    type: 'grid',
    data: join(0, 1, rows - 1, columns - 1, u32be(widthPx), u32be(heightPx)),
    properties: [imageSize(widthPx, heightPx), ...more],
    references: [['dimg', tiles]],
  };
}

/** EXIF that says "turned by 90°" and where it was. */
const exifOfPhone: HeifItem = {
  type: 'Exif',
  data: join(
    u32be(0),
    Buffer.from(
      'MM\0\x2a\0\0\0\x08\0\x02\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\x88\x25\0\x04\0\0\0\x01',
      'latin1',
    ),
    u32be(38),
    u32be(0),
    Buffer.from('\0\x01\0\x01\0\x02\0\0\0\x02N\0\0\0', 'latin1'),
    u32be(0),
  ),
  properties: [],
  references: [['cdsc', [1]]],
};

const tiles = [0, 1, 2, 3].map((index) => takeApart(heicSample(`tile-${index}.heic`)));

/** Files of `fixtures/heic` that are put together from the others there, each of which an encoder wrote. */
export const composedSamples: Readonly<Record<string, () => Buffer>> = {
  // Tiles that reach beyond the right and lower edges, and a primary item behind them.
  'grid.heic': () =>
    createHeif([...tiles, gridOf(2, 2, [180, 120], [1, 2, 3, 4])], { ...HEIC, primary: 5 }),
  // As a phone held upright writes it, which says so in EXIF, too.
  'turned.heic': () => createHeif([withProperties('caps.heic', irot(3)), exifOfPhone], HEIC),
  'cut-turned-mirrored.heic': () =>
    createHeif([withProperties('caps.heic', clap(100, 60, -20, 10), irot(1), imir(1))], HEIC),
  'second-is-primary.heic': () =>
    createHeif([takeApart(heicSample('tile-0.heic')), takeApart(heicSample('caps.heic'))], {
      ...HEIC,
      primary: 2,
    }),
  'says-avif.heic': () => createHeif([takeApart(heicSample('caps.heic'))]),
  // One tile 48 times, as a phone's photograph has them: what `npm run measure:weights` takes for the least.
  'flat.heic': () =>
    createHeif(
      [
        gridOf(
          6,
          8,
          [4032, 3024],
          Array.from({ length: 48 }, () => 2),
        ),
        takeApart(heicSample('flat-tile.heic')),
      ],
      HEIC,
    ),
  // An image sequence: its tracks are behind its primary image.
  'burst.heic': () =>
    join(
      createHeif([takeApart(heicSample('caps.heic'))], { brands: ['hevc', 'hevcmsf1heicmif1'] }),
      box('moov', box('free')),
    ),
};
