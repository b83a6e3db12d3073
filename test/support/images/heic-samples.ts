import { readFileSync } from 'node:fs';
import { join, u32be } from '../../formats/containers.ts';
import { box, type HeifItem, imageSize, takeApart } from './heif-file.ts';

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

/** The coded image of a sample, saying that it has another size. */
export function saying(name: string, widthPx: number, heightPx = widthPx): HeifItem {
  const { properties, ...rest } = takeApart(heicSample(name), 'ispe');
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties] };
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
