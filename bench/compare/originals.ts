import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import type { OutputFormat } from '../../src/media/image-format.ts';
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

/** Draws all originals into a new folder. */
export async function makeOriginals(): Promise<Originals> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-'));
  const random = new Random(1);
  const put = async (bytes: Buffer, index: number, paths: readonly string[]): Promise<void> => {
    const source = join(folder, `original-${index}-${bytes.length}`);
    await writeFile(source, bytes);
    for (const path of paths) {
      await mkdir(join(folder, path, '..'), { recursive: true });
      await link(source, join(folder, path));
    }
  };

  const photos: Rendering[] = [];
  let photoId = 0;
  for (const widthPx of PHOTO_WIDTHS_PX) {
    for (const photo of PHOTOS) {
      for (const format of STILL_FORMATS) {
        const bytes = await sharp(photo)
          .resize(widthPx, Math.round((widthPx * 2) / 3))
          .toFormat(format)
          .toBuffer();
        const paths = Array.from({ length: COPIES.photos }, () => {
          photoId += 1;
          return `attachments/1/${photoId}/photo.${format}`;
        });
        await put(bytes, photoId, paths);
        for (const path of paths) {
          const darkroomPath = `/${path}?width=${FIT_PX}&quality=high`;
          photos.push({ path, widthPx: FIT_PX, format, isAnimated: false, darkroomPath });
        }
      }
    }
  }

  const avatars: Rendering[] = [];
  let avatarId = 0;
  for (const edgePx of AVATAR_EDGES_PX) {
    for (const photo of PHOTOS) {
      for (const source of STILL_FORMATS) {
        const ids = Array.from({ length: COPIES.avatars }, () => {
          avatarId += 1;
          return avatarId;
        });
        await put(
          await drawAvatar(photo, edgePx, source),
          avatarId,
          ids.map((id) => `avatars/${id}/face`),
        );
        for (const id of ids) {
          for (const widthPx of AVATAR_SIZES.filter((size) => size < edgePx)) {
            for (const format of ['webp', 'png'] as const) {
              const darkroomPath = `/avatars/${id}/face.${format}?size=${widthPx}`;
              const path = `avatars/${id}/face`;
              avatars.push({ path, widthPx, format, isAnimated: false, darkroomPath });
            }
          }
        }
      }
    }
  }

  const emojis: Rendering[] = [];
  let emojiId = 0;
  for (const film of FILMS) {
    for (const photo of PHOTOS) {
      const ids = Array.from({ length: COPIES.emojis }, () => {
        emojiId += 1;
        return emojiId;
      });
      await put(
        await drawAnimation(photo, film),
        emojiId,
        ids.map((id) => `emojis/${id}`),
      );
      for (const id of ids) {
        for (const widthPx of EMOJI_SIZES) {
          for (const format of ['webp', 'gif'] as const) {
            const animated = format === 'webp' ? '&animated=true' : '';
            const darkroomPath = `/emojis/${id}.${format}?size=${widthPx}${animated}`;
            emojis.push({ path: `emojis/${id}`, widthPx, format, isAnimated: true, darkroomPath });
          }
        }
      }
    }
  }

  return {
    folder,
    photos: random.shuffle(photos),
    avatars: random.shuffle(avatars),
    emojis: random.shuffle(emojis),
    remove: () => rm(folder, { recursive: true }),
  };
}
