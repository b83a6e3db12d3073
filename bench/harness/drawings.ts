import { link, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import sharp from 'sharp';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';

/** Photos that everything is cut from. */
export const PHOTOS = [
  'attachments/1/1/country-lane.jpg',
  'attachments/1/2/waterfall.jpg',
  'attachments/1/12/red-panda.jpg',
].map((key) => join('fixtures/originals', key));

const STILL_FORMATS = ['jpeg', 'png', 'webp'] as const;

export interface Drawing {
  readonly format: (typeof STILL_FORMATS)[number] | 'gif';
  readonly widthPx: number;
  readonly bytes: Buffer;
}

/** What is filmed: squares, so many. */
export interface Film {
  readonly format: 'gif' | 'webp';
  readonly widthPx: number;
  readonly frames: number;
}

/** Every photo in every size and every format of stills. */
export function drawStills(
  widthsPx: readonly number[],
  heightOf: (widthPx: number) => number,
): Promise<Drawing[]> {
  return Promise.all(
    widthsPx.flatMap((widthPx) =>
      PHOTOS.flatMap((photo) =>
        STILL_FORMATS.map(async (format) => {
          const image = sharp(photo).resize(widthPx, Math.round(heightOf(widthPx)));
          return { format, widthPx, bytes: await image.toFormat(format).toBuffer() };
        }),
      ),
    ),
  );
}

/** Squares, as people upload them. */
export function drawAvatars(): Promise<Drawing[]> {
  return drawStills([256, 512, 768, 1024], (edgePx) => edgePx);
}

/** Folders of stills of all kinds, as people upload them as emojis. */
const PICKED_FOLDERS = [
  ...['emojis', 'stickers', 'avatars', 'icons'].map((kind) => `originals/${kind}`),
  ...['png-8', 'png-alpha', 'png-palette', 'jpeg-photo', 'jpeg-sampling', 'gif-static'],
  ...['webp-alpha', 'webp-lossless', 'webp-lossy'],
].map((folder) => join('fixtures', folder.includes('/') ? folder : join('corpus', folder)));
const MAX_PICKED_BYTES = 100_000;

/** Finds the stills of the corpus and the samples that are at least so wide. */
export async function findStills(leastPx: number): Promise<Drawing[]> {
  const drawings: Drawing[] = [];
  for (const folder of PICKED_FOLDERS) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((each) => each.isFile())) {
      const bytes = await readFile(join(entry.parentPath, entry.name));
      const facts = bytes.length <= MAX_PICKED_BYTES ? readImageFacts(bytes) : undefined;
      if (facts === undefined || facts.animation !== undefined || facts.widthPx < leastPx) continue;
      const { format, widthPx } = facts;
      if (format === 'png' || format === 'jpeg' || format === 'webp' || format === 'gif') {
        drawings.push({ format, widthPx, bytes });
      }
    }
  }
  return drawings;
}

/** A film of every photo, by every description. */
export function drawFilms(films: readonly Film[]): Promise<Drawing[]> {
  return Promise.all(
    films.flatMap((film) =>
      PHOTOS.map(async (photo) => ({ ...film, bytes: await drawFilm(photo, film) })),
    ),
  );
}

/** A camera that moves over a photo: every frame differs everywhere, as in a film. */
async function drawFilm(photo: string, { format, widthPx, frames }: Film): Promise<Buffer> {
  const stepPx = 6;
  const ground = await sharp(photo)
    .resize(widthPx + frames * stepPx, widthPx)
    .png()
    .toBuffer();
  const pictures = await Promise.all(
    Array.from({ length: frames }, (_, index) =>
      sharp(ground)
        .extract({ left: index * stepPx, top: 0, width: widthPx, height: widthPx })
        .png({ compressionLevel: 1 })
        .toBuffer(),
    ),
  );
  const film = sharp(pictures, { join: { animated: true } });
  return format === 'gif'
    ? film.gif({ delay: 80, loop: 0 }).toBuffer()
    : film.webp({ delay: 80, loop: 0, quality: 90 }).toBuffer();
}

/**
 * Puts drawings under ids from 0 up, in turn: each is there under many, as links to one file. To a server they are
 * originals like any other.
 *
 * @param keyOf path of an original below the folder, by its id
 */
export async function layOut(
  folder: string,
  drawings: readonly Drawing[],
  ids: number,
  keyOf: (id: number, drawing: Drawing) => string,
): Promise<void> {
  for (const [index, drawing] of drawings.entries()) {
    let source: string | undefined;
    for (let id = index; id < ids; id += drawings.length) {
      const path = join(folder, keyOf(id, drawing));
      await mkdir(dirname(path), { recursive: true });
      if (source === undefined) await writeFile(path, drawing.bytes, { flag: 'wx' });
      else await link(source, path);
      source ??= path;
    }
  }
}
