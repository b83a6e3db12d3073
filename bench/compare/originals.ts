import { createHash } from 'node:crypto';
import { link, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import sharp from 'sharp';
import type { OutputFormat } from '../../src/contract/image-formats.ts';
import { drawAnimation, drawAvatar, PHOTOS, type StillFormat } from '../harness/draw-originals.ts';
import { Random } from '../harness/random.ts';

/** One rendering, asked for of each contestant in its own words. */
export interface Rendering {
  /** Path of the original below the folder. */
  readonly path: string;
  readonly widthPx: number;
  readonly format: OutputFormat;
  readonly isAnimated: boolean;
  /** What Darkroom calls it. */
  readonly darkroomPath: string;
}

/** What there is to be rendered, by workload, in random order. */
export interface Originals {
  readonly folder: string;
  readonly photos: readonly Rendering[];
  readonly avatars: readonly Rendering[];
  readonly emojis: readonly Rendering[];
  readonly remove: () => Promise<void>;
}

const STILL_FORMATS: readonly StillFormat[] = ['jpeg', 'png', 'webp'];

/** Photographs of 2 to 4 megapixels, as in imgproxy's published protocol, to fit into 512. */
const PHOTO_WIDTHS_PX = [1730, 1820, 1910, 2000, 2090, 2180, 2270, 2360, 2400, 1960, 2050, 2300];
const FIT_PX = 512;

const AVATAR_EDGES_PX = [256, 512, 768, 1024];
const AVATAR_SIZES = [16, 32, 48, 64, 80, 100, 128, 160, 240, 256];

const FILMS = [
  { format: 'gif', edgePx: 96, frames: 12 },
  { format: 'gif', edgePx: 128, frames: 24 },
  { format: 'webp', edgePx: 96, frames: 12 },
  { format: 'webp', edgePx: 128, frames: 24 },
] as const;
const EMOJI_SIZES = [20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80];

/** How often each original is there, under ids of its own: links to one file. */
const COPIES = { photos: 12, avatars: 14, emojis: 40 };

/**
 * Draws all originals into a new folder, or into one that others know too.
 *
 * @param known an empty folder, or none yet; it stays, but empty
 * @throws Error if there is something in it
 */
export async function makeOriginals(known?: string): Promise<Originals> {
  const folder = resolve(known ?? (await mkdtemp(join(tmpdir(), 'darkroom-compare-'))));
  if (known !== undefined) {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw new Error(`--folder: ${folder} is not empty`);
  }
  const random = new Random(1);
  return {
    folder,
    photos: random.shuffle(await makePhotos(folder)),
    avatars: random.shuffle(await makeAvatars(folder)),
    emojis: random.shuffle(await makeEmojis(folder)),
    remove: async () => {
      if (known === undefined) await rm(folder, { recursive: true });
      else
        for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
    },
  };
}

async function makePhotos(folder: string): Promise<Rendering[]> {
  const renderings: Rendering[] = [];
  for (const widthPx of PHOTO_WIDTHS_PX) {
    for (const photo of PHOTOS) {
      for (const format of STILL_FORMATS) {
        const heightPx = Math.round((widthPx * 2) / 3);
        const bytes = await sharp(photo).resize(widthPx, heightPx).toFormat(format).toBuffer();
        const nameOf = (id: string): string => `attachments/1/${id}/photo.${format}`;
        const ids = await putCopies(
          folder,
          bytes,
          `${photo} ${widthPx} ${format}`,
          'photos',
          nameOf,
        );
        for (const id of ids) {
          const path = nameOf(id);
          const darkroomPath = `/${path}?width=${FIT_PX}&quality=high`;
          renderings.push({ path, widthPx: FIT_PX, format, isAnimated: false, darkroomPath });
        }
      }
    }
  }
  return renderings;
}

async function makeAvatars(folder: string): Promise<Rendering[]> {
  const renderings: Rendering[] = [];
  const nameOf = (id: string): string => `avatars/${id}/face`;
  for (const edgePx of AVATAR_EDGES_PX) {
    for (const photo of PHOTOS) {
      for (const source of STILL_FORMATS) {
        const bytes = await drawAvatar(photo, edgePx, source);
        const ids = await putCopies(
          folder,
          bytes,
          `${photo} ${edgePx} ${source}`,
          'avatars',
          nameOf,
        );
        for (const id of ids) {
          for (const widthPx of AVATAR_SIZES.filter((size) => size < edgePx)) {
            for (const format of ['webp', 'png'] as const) {
              const path = nameOf(id);
              const darkroomPath = `/${path}.${format}?size=${widthPx}`;
              renderings.push({ path, widthPx, format, isAnimated: false, darkroomPath });
            }
          }
        }
      }
    }
  }
  return renderings;
}

async function makeEmojis(folder: string): Promise<Rendering[]> {
  const renderings: Rendering[] = [];
  const nameOf = (id: string): string => `emojis/${id}`;
  for (const film of FILMS) {
    for (const photo of PHOTOS) {
      const bytes = await drawAnimation(photo, film);
      const { format: source, edgePx } = film;
      const ids = await putCopies(folder, bytes, `${photo} ${edgePx} ${source}`, 'emojis', nameOf);
      for (const id of ids) {
        for (const widthPx of EMOJI_SIZES) {
          for (const format of ['webp', 'gif'] as const) {
            const path = nameOf(id);
            const animated = format === 'webp' ? '&animated=true' : '';
            const darkroomPath = `/${path}.${format}?size=${widthPx}${animated}`;
            renderings.push({ path, widthPx, format, isAnimated: true, darkroomPath });
          }
        }
      }
    }
  }
  return renderings;
}

/**
 * Puts an original under ids of its own.
 *
 * @param title what no other original of its kind is called; the ids follow from it
 * @returns the ids
 */
async function putCopies(
  folder: string,
  bytes: Buffer,
  title: string,
  kind: keyof typeof COPIES,
  nameOf: (id: string) => string,
): Promise<string[]> {
  const digest = createHash('sha1').update(`${kind} ${title}`).digest();
  // The lower half of an id counts the copies.
  const base = BigInt(digest.readUInt32BE()) << 16n;
  const source = join(folder, `${kind}-${base}`);
  await writeFile(source, bytes, { flag: 'wx' });
  const ids = Array.from({ length: COPIES[kind] }, (_, copy) => String(base + BigInt(copy)));
  for (const id of ids) {
    const path = join(folder, nameOf(id));
    await mkdir(dirname(path), { recursive: true });
    await link(source, path);
  }
  return ids;
}
