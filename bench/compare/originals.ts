import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { OutputFormat } from '../../src/contract/image-formats.ts';
import type { Size } from '../../src/formats/image-facts.ts';
import { mayShrinkOnLoad } from '../../src/pipeline/render/plan.ts';
import {
  type Drawing,
  drawAvatars,
  drawFilms,
  drawStills,
  type Film,
  findStills,
  layOut,
} from '../harness/drawings.ts';
import { Random } from '../harness/random.ts';

/** One rendering, asked for of each contestant in its own words. */
export interface Rendering {
  /** Path of the original below the folder. */
  readonly path: string;
  readonly widthPx: number;
  readonly format: OutputFormat;
  readonly isAnimated: boolean;
  /** Whether a JPEG's decoder may reduce as far as it can, as Darkroom decides. */
  readonly shrinksOnLoad: boolean;
  /** What Darkroom calls it. */
  readonly darkroomPath: string;
}

/** What there is to be rendered, by what it shows, in random order. */
export type Originals = Awaited<ReturnType<typeof makeOriginals>>;

/** Photographs of 2 to 4 megapixels, and the widths that they are asked for in. */
const PHOTO_WIDTHS_PX = [1730, 1820, 1910, 2000, 2090, 2180, 2270, 2360, 2400, 1960, 2050, 2300];
const FIT_WIDTHS_PX = Array.from({ length: 17 }, (_, step) => 480 + 10 * step);

const heightOfPhoto = (widthPx: number): number => Math.round((widthPx * 2) / 3);
const sizeOf = (widthPx: number): Size => ({ widthPx, heightPx: heightOfPhoto(widthPx) });

const AVATAR_SIZES = [16, 32, 48, 64, 80, 100, 128, 160, 240, 256];

const FILMS: readonly Film[] = [
  { format: 'gif', widthPx: 96, frames: 12 },
  { format: 'gif', widthPx: 128, frames: 24 },
  { format: 'webp', widthPx: 96, frames: 12 },
  { format: 'webp', widthPx: 128, frames: 24 },
];
const EMOJI_SIZES = [20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80];

/** Stills of a client's picker, and how many are asked for in all, each under an id of its own. */
const PICKER_PX = 48;
export const PICKED = 300;
const PICKERS = 60;

/** Originals of one kind, and what is asked for of each. */
interface Kind {
  readonly drawings: readonly Drawing[];
  /** How often each drawing is there, under ids of its own. */
  readonly copies: number;
  readonly pathOf: (id: number, drawing: Drawing) => string;
  readonly renderingsOf: (path: string, drawing: Drawing) => readonly Rendering[];
}

/**
 * Draws all originals into a new folder, or into one that others know too.
 *
 * @param known an empty folder, or none yet; it stays, but empty
 * @throws Error if there is something in it
 */
export async function makeOriginals(known?: string) {
  const folder = resolve(known ?? (await mkdtemp(join(tmpdir(), 'darkroom-compare-'))));
  if (known !== undefined) {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw new Error(`--folder: ${folder} is not empty`);
  }
  const random = new Random(1);
  const make = async ({ drawings, copies, pathOf, renderingsOf }: Kind): Promise<Rendering[]> => {
    const renderings: Rendering[] = [];
    await layOut(folder, drawings, drawings.length * copies, (id, drawing) => {
      const path = pathOf(id, drawing);
      renderings.push(...renderingsOf(path, drawing));
      return path;
    });
    return random.shuffle(renderings);
  };
  return {
    folder,
    photos: await make({
      drawings: await drawStills(PHOTO_WIDTHS_PX, heightOfPhoto),
      copies: 12,
      pathOf: (id, { format }) => `attachments/1/${id}/photo.${format}`,
      renderingsOf: (path, { format, widthPx: originalPx }) =>
        FIT_WIDTHS_PX.map((widthPx) => ({
          ...{ path, widthPx, format: 'webp', isAnimated: false },
          shrinksOnLoad: mayShrinkOnLoad({ format, ...sizeOf(originalPx) }, sizeOf(widthPx)),
          darkroomPath: `/${path}?width=${widthPx}&quality=high&format=webp`,
        })),
    }),
    avatars: await make({
      drawings: await drawAvatars(),
      copies: 14,
      pathOf: (id) => `avatars/${id}/face`,
      renderingsOf: (path, drawing) =>
        AVATAR_SIZES.filter((size) => size < drawing.widthPx).flatMap((widthPx) =>
          (['webp', 'png'] as const).map((format) => assetRendering(path, widthPx, format, false)),
        ),
    }),
    emojis: await make({
      drawings: await drawFilms(FILMS),
      copies: 40,
      pathOf: (id) => `emojis/${id}`,
      renderingsOf: (path) =>
        EMOJI_SIZES.flatMap((widthPx) =>
          (['webp', 'gif'] as const).map((format) => assetRendering(path, widthPx, format, true)),
        ),
    }),
    picker: await findStills(PICKER_PX).then((drawings) =>
      make({
        drawings,
        copies: Math.ceil((PICKED * PICKERS) / drawings.length),
        pathOf: (id) => `icons/${id}/picked`,
        renderingsOf: (path) => [assetRendering(path, PICKER_PX, 'webp', false)],
      }),
    ),
    remove: async () => {
      for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
      if (known === undefined) await rm(folder, { recursive: true });
    },
  };
}

function assetRendering(
  path: string,
  widthPx: number,
  format: OutputFormat,
  isAnimated: boolean,
): Rendering {
  const animated = isAnimated && format === 'webp' ? '&animated=true' : '';
  const darkroomPath = `/${path}.${format}?size=${widthPx}${animated}`;
  return { path, widthPx, format, isAnimated, shrinksOnLoad: false, darkroomPath };
}
