import sharp from 'sharp';
import { drawAvatars, drawFilms, type Film, layOut, PHOTOS } from '../harness/drawings.ts';
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

/** Edge of a photo, in pixels: rendered without loss, it takes some 15 s of a core, which is all that a render may take. */
const COSTLY_EDGE_PX = 5_000;

/** What is rendered: an avatar as a small WebP, an animation as an animated WebP, or a large photo without loss. */
export type Sort = 'light' | 'heavy' | 'costly';

/** What there is to ask for. */
export type OverloadOriginals = Awaited<ReturnType<typeof drawOriginals>>;

/**
 * Draws originals into a folder.
 *
 * @param counts how many requests there must be, at least, of each sort
 */
export async function drawOriginals(folder: string, counts: Readonly<Record<Sort, number>>) {
  const lightIds = Math.ceil(counts.light / LIGHT_WIDTHS_PX.length);
  const heavyIds = Math.ceil(counts.heavy / HEAVY_WIDTHS_PX.length);
  const films = await drawFilms(HEAVY_FILMS);
  const photo = await sharp(PHOTOS[0]).resize(COSTLY_EDGE_PX, COSTLY_EDGE_PX).jpeg().toBuffer();
  const costly = { format: 'jpeg', widthPx: COSTLY_EDGE_PX, bytes: photo } as const;
  await layOut(folder, await drawAvatars(), lightIds, (id) => `avatars/${id}/face`);
  await layOut(folder, films, heavyIds, (id) => `stickers/${id}`);
  await layOut(folder, [costly], counts.costly, (id) => `attachments/1/${id}/photo.jpg`);
  const random = new Random(1);
  const list = (ids: number, widthsPx: readonly number[], targetOf: (id: number) => string) =>
    random.shuffle(
      Array.from({ length: ids }, (_, id) =>
        widthsPx.map((widthPx) => `${targetOf(id)}?quality=high&size=${widthPx}`),
      ).flat(),
    );
  return {
    /** The requests that there are for them, each for another result. */
    paths: {
      light: list(lightIds, LIGHT_WIDTHS_PX, (id) => `/avatars/${id}/face.webp`),
      heavy: list(heavyIds, HEAVY_WIDTHS_PX, (id) => `/stickers/${id}.webp`),
      costly: Array.from(
        { length: counts.costly },
        (_, id) => `/attachments/1/${id}/photo.jpg?format=webp&quality=lossless`,
      ),
    },
    /** Sizes of the animated originals. */
    animationBytes: films.map(({ bytes }) => bytes.length),
  };
}
