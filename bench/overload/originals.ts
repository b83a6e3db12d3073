import sharp from 'sharp';
import {
  AVATAR_EDGES_PX,
  drawFilms,
  drawStills,
  type Film,
  layOut,
  PHOTOS,
} from '../harness/drawings.ts';
import { Random } from '../harness/random.ts';

const LIGHT_WIDTHS_PX = [64, 80, 96, 100, 128];

/** Animations as people upload them for stickers. */
const HEAVY_FILMS: readonly Film[] = [
  { format: 'gif', widthPx: 200, frames: 16 },
  { format: 'gif', widthPx: 320, frames: 24 },
  { format: 'webp', widthPx: 320, frames: 24 },
  { format: 'webp', widthPx: 480, frames: 40 },
];
const HEAVY_WIDTHS_PX = [128, 160, 240, 256, 300];

/** Edge of a photograph that takes some 15 s of a core without loss: as long as a render may. */
const COSTLY_EDGE_PX = 5_000;

/** Hits in memory, avatars as small WebP, animations as animated WebP, large photographs without loss. */
export type Sort = 'hits' | 'light' | 'heavy' | 'costly';

/**
 * Draws originals into a folder, and lists a path for each rendering of them.
 *
 * @param counts least number of paths of each sort; hits are light renders that come again
 */
export async function drawOriginals(
  folder: string,
  counts: Readonly<Record<Sort, number>>,
): Promise<Record<Sort, string[]>> {
  const hitIds = Math.ceil(counts.hits / LIGHT_WIDTHS_PX.length);
  const lightIds = Math.ceil(counts.light / LIGHT_WIDTHS_PX.length);
  const heavyIds = Math.ceil(counts.heavy / HEAVY_WIDTHS_PX.length);
  const films = await drawFilms(HEAVY_FILMS);
  const photo = await sharp(PHOTOS[0]).resize(COSTLY_EDGE_PX, COSTLY_EDGE_PX).jpeg().toBuffer();
  const costly = { format: 'jpeg', widthPx: COSTLY_EDGE_PX, bytes: photo } as const;
  const avatars = await drawStills(AVATAR_EDGES_PX);
  await layOut(folder, avatars, hitIds, (id) => `avatars/${id}/hit`);
  await layOut(folder, avatars, lightIds, (id) => `avatars/${id}/face`);
  await layOut(folder, films, heavyIds, (id) => `stickers/${id}`);
  await layOut(folder, [costly], counts.costly, (id) => `attachments/1/${id}/photo.jpg`);
  const list = (ids: number, widthsPx: readonly number[], targetOf: (id: number) => string) =>
    new Random(1).shuffle(
      Array.from({ length: ids }, (_, id) =>
        widthsPx.map((widthPx) => `${targetOf(id)}?quality=high&size=${widthPx}`),
      ).flat(),
    );
  return {
    hits: list(hitIds, LIGHT_WIDTHS_PX, (id) => `/avatars/${id}/hit.webp`),
    light: list(lightIds, LIGHT_WIDTHS_PX, (id) => `/avatars/${id}/face.webp`),
    heavy: list(heavyIds, HEAVY_WIDTHS_PX, (id) => `/stickers/${id}.webp`),
    costly: Array.from(
      { length: counts.costly },
      (_, id) => `/attachments/1/${id}/photo.jpg?format=webp&quality=lossless`,
    ),
  };
}
