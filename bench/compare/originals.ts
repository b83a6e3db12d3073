import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { OutputFormat } from '../../src/contract/image-formats.ts';
import { mayShrinkOnLoad } from '../../src/pipeline/render/plan.ts';
import {
  AVATAR_EDGES_PX,
  type Drawing,
  drawFilms,
  drawStills,
  type Film,
  findStills,
  layOut,
} from '../harness/drawings.ts';
import { Random } from '../harness/random.ts';

/** Rendering that clients request of each contestant in its own words. */
export interface Rendering {
  /** Path of the original below the folder. */
  readonly path: string;
  readonly widthPx: number;
  readonly format: OutputFormat;
  readonly isAnimated: boolean;
  /** Whether the decoder of a JPEG may reduce as far as it can, as Darkroom decides. */
  readonly shrinksOnLoad: boolean;
  readonly darkroomPath: string;
}

/** Originals of the contests. */
export type Originals = Awaited<ReturnType<typeof openOriginals>>;

/** Photographs of 2 to 4 megapixels, and the widths of their renderings. */
const PHOTO_WIDTHS_PX = [1730, 2360, 1910, 2000, 2090, 2180, 2270, 1820, 2400, 1960, 2050, 2300];
const QUICK_PHOTO_WIDTHS_PX = PHOTO_WIDTHS_PX.slice(0, 2);
const FIT_WIDTHS_PX = Array.from({ length: 17 }, (_, step) => 480 + 10 * step);
const heightOfPhoto = (widthPx: number): number => Math.round((widthPx * 2) / 3);
const sizeOfPhoto = (widthPx: number) => ({ widthPx, heightPx: heightOfPhoto(widthPx) });

const AVATAR_SIZES = [16, 32, 48, 64, 80, 100, 128, 160, 240, 256];

const FILMS: readonly Film[] = [
  { format: 'gif', widthPx: 96, frames: 12 },
  { format: 'gif', widthPx: 128, frames: 24 },
  { format: 'webp', widthPx: 96, frames: 12 },
  { format: 'webp', widthPx: 128, frames: 24 },
];
const EMOJI_SIZES = [20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80];

/** Size of the stills of a client's picker, their number, and how many pickers there are with other ids. */
const PICKER_PX = 48;
export const PICKED = 300;
const PICKERS = 60;

/** Kind of originals, and the renderings of each original. */
interface Kind {
  readonly draw: () => Promise<Drawing[]>;
  /** Number of ids, of which each has one of the drawings. */
  readonly countOf: (drawings: number) => number;
  readonly pathOf: (id: number, drawing: Drawing) => string;
  readonly renderingsOf: (path: string, drawing: Drawing) => readonly Rendering[];
}

/** @param photoWidthsPx widths of the photographs */
const createKinds = (photoWidthsPx: readonly number[]) =>
  ({
    photos: {
      draw: () => drawStills(photoWidthsPx, heightOfPhoto),
      countOf: (drawings) => 12 * drawings,
      pathOf: (id, { format }) => `attachments/1/${id}/photo.${format}`,
      renderingsOf: (path, { format, widthPx: originalPx }) =>
        FIT_WIDTHS_PX.map((widthPx) => ({
          ...{ path, widthPx, format: 'webp', isAnimated: false },
          shrinksOnLoad: mayShrinkOnLoad(
            { format, ...sizeOfPhoto(originalPx) },
            sizeOfPhoto(widthPx),
          ),
          darkroomPath: `/${path}?width=${widthPx}&quality=high&format=webp`,
        })),
    },
    avatars: {
      draw: () => drawStills(AVATAR_EDGES_PX),
      countOf: (drawings) => 14 * drawings,
      pathOf: (id) => `avatars/${id}/face`,
      renderingsOf: (path, { widthPx: originalPx }) =>
        AVATAR_SIZES.filter((size) => size < originalPx).flatMap((widthPx) =>
          (['webp', 'png'] as const).map((format) => assetRendering(path, widthPx, format, false)),
        ),
    },
    emojis: {
      draw: () => drawFilms(FILMS),
      countOf: (drawings) => 40 * drawings,
      pathOf: (id) => `emojis/${id}`,
      renderingsOf: (path) =>
        EMOJI_SIZES.flatMap((widthPx) =>
          (['webp', 'gif'] as const).map((format) => assetRendering(path, widthPx, format, true)),
        ),
    },
    picker: {
      draw: () => findStills(PICKER_PX),
      countOf: () => PICKED * PICKERS,
      pathOf: (id) => `icons/${id}/picked`,
      renderingsOf: (path) => [assetRendering(path, PICKER_PX, 'webp', false)],
    },
  }) satisfies Readonly<Record<string, Kind>>;

/**
 * Opens a new folder of originals, or one that other servers know too. Each kind is drawn when a contest first needs it.
 *
 * @param known an empty folder, or a path without one; its contents are removed at the end
 * @throws Error if the folder is not empty
 */
export async function openOriginals(known: string | undefined, isQuick: boolean) {
  const folder = resolve(known ?? (await mkdtemp(join(tmpdir(), 'darkroom-compare-'))));
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new Error(`--folder: ${folder} is not empty`);
  const kinds = createKinds(isQuick ? QUICK_PHOTO_WIDTHS_PX : PHOTO_WIDTHS_PX);
  const made = new Map<string, Promise<readonly Rendering[]>>();
  const make = async ({ draw, countOf, pathOf, renderingsOf }: Kind) => {
    const drawings = await draw();
    const renderings: Rendering[] = [];
    await layOut(folder, drawings, countOf(drawings.length), (id, drawing) => {
      const path = pathOf(id, drawing);
      renderings.push(...renderingsOf(path, drawing));
      return path;
    });
    return new Random(1).shuffle(renderings);
  };
  return {
    folder,
    /** Lists all renderings of a kind, in random order. */
    list: (kind: keyof typeof kinds): Promise<readonly Rendering[]> => {
      const making = made.get(kind) ?? make(kinds[kind]);
      made.set(kind, making);
      return making;
    },
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
