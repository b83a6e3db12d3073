import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drawAvatars, drawFilms, type Film, layOut } from '../harness/drawings.ts';
import { Random } from '../harness/random.ts';

const LIGHT_WIDTHS_PX = [64, 80, 96, 100, 128];

/** Animations as people upload them for stickers. */
export const HEAVY_FILMS: readonly Film[] = [
  { format: 'gif', widthPx: 200, frames: 16 },
  { format: 'gif', widthPx: 320, frames: 24 },
  { format: 'webp', widthPx: 320, frames: 24 },
  { format: 'webp', widthPx: 480, frames: 40 },
];
const HEAVY_WIDTHS_PX = [128, 160, 240, 256, 300];

/** How many requests there are, or must be, of each sort. */
export interface PathCounts {
  readonly light: number;
  readonly heavy: number;
}

/** A folder of originals, and the requests that there are for it, each of them for another result. */
export interface OverloadOriginals {
  readonly folder: string;
  /** Light renders: an avatar as a small WebP. */
  readonly lightPaths: readonly string[];
  /** Heavy renders: an animation as an animated WebP. */
  readonly heavyPaths: readonly string[];
  /** Sizes of the animated originals, in bytes. */
  readonly animationBytes: readonly number[];
  readonly remove: () => Promise<void>;
}

/** Makes a folder of originals with at least so many requests. */
export async function makeOriginals({ light, heavy }: PathCounts): Promise<OverloadOriginals> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-overload-'));
  const lightIds = Math.ceil(light / LIGHT_WIDTHS_PX.length);
  const heavyIds = Math.ceil(heavy / HEAVY_WIDTHS_PX.length);
  const films = await drawFilms(HEAVY_FILMS);
  await layOut(folder, await drawAvatars(), lightIds, (id) => `avatars/${id}/face`);
  await layOut(folder, films, heavyIds, (id) => `stickers/${id}`);
  const random = new Random(1);
  const listPaths = (ids: number, widthsPx: readonly number[], pathOf: (id: number) => string) =>
    random.shuffle(
      Array.from({ length: ids }, (_, id) =>
        widthsPx.map((widthPx) => `${pathOf(id)}size=${widthPx}`),
      ).flat(),
    );
  return {
    folder,
    lightPaths: listPaths(lightIds, LIGHT_WIDTHS_PX, (id) => `/avatars/${id}/face.webp?`),
    heavyPaths: listPaths(heavyIds, HEAVY_WIDTHS_PX, (id) => `/stickers/${id}.webp?quality=high&`),
    animationBytes: films.map(({ bytes }) => bytes.length),
    remove: () => rm(folder, { recursive: true }),
  };
}
