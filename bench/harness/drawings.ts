import { link, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import sharp from 'sharp';

/** Photographs that all drawings are cut from. */
export const PHOTOS = [
  'attachments/1/1/country-lane.jpg',
  'attachments/1/2/waterfall.jpg',
  'attachments/1/12/red-panda.jpg',
].map((key) => join('fixtures/originals', key));

/** Edges of avatars as people upload them. */
export const AVATAR_EDGES_PX = [256, 512, 768, 1024];

const STILL_FORMATS = ['jpeg', 'png', 'webp'] as const;

/** Original that the bench made or found. */
export interface Drawing {
  readonly format: (typeof STILL_FORMATS)[number] | 'gif';
  readonly widthPx: number;
  readonly bytes: Buffer;
}

/** Square animation. */
export interface Film {
  readonly format: 'gif' | 'webp';
  readonly widthPx: number;
  readonly frames: number;
}

/** Draws each photograph in each size, as JPEG, PNG and WebP; squares unless `heightOf` is given. */
export function drawStills(
  widthsPx: readonly number[],
  heightOf = (widthPx: number) => widthPx,
): Promise<Drawing[]> {
  return Promise.all(
    widthsPx.flatMap((widthPx) =>
      PHOTOS.flatMap((photo) =>
        STILL_FORMATS.map(async (format) => {
          const image = sharp(photo).resize(widthPx, heightOf(widthPx));
          return { format, widthPx, bytes: await image.toFormat(format).toBuffer() };
        }),
      ),
    ),
  );
}

/** Draws a film of each photograph, by each description. */
export function drawFilms(films: readonly Film[]): Promise<Drawing[]> {
  return Promise.all(
    films.flatMap((film) =>
      PHOTOS.map(async (photo) => ({ ...film, bytes: await drawFilm(photo, film) })),
    ),
  );
}

/** Moves a camera over a photograph: each frame differs everywhere, as in a film. */
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
  return sharp(pictures, { join: { animated: true } })
    .toFormat(format, { delay: 80, loop: 0, ...(format === 'webp' && { quality: 90 }) })
    .toBuffer();
}

/** Folders below `fixtures` with stills as people upload them for emojis. */
const PICKED_FOLDERS = [
  ...['originals/emojis', 'originals/stickers', 'originals/avatars', 'originals/icons'],
  ...['corpus/png-8', 'corpus/png-alpha', 'corpus/png-palette', 'corpus/jpeg-photo'],
  ...['corpus/jpeg-sampling', 'corpus/gif-static', 'corpus/webp-alpha', 'corpus/webp-lossless'],
  'corpus/webp-lossy',
];
const MAX_PICKED_BYTES = 100_000;

/** Finds the stills of the corpus and the samples that are at least `leastPx` wide. */
export async function findStills(leastPx: number): Promise<Drawing[]> {
  const drawings: Drawing[] = [];
  for (const folder of PICKED_FOLDERS) {
    const entries = await readdir(join('fixtures', folder), {
      recursive: true,
      withFileTypes: true,
    });
    for (const entry of entries.filter((each) => each.isFile())) {
      const bytes = await readFile(join(entry.parentPath, entry.name));
      if (bytes.length > MAX_PICKED_BYTES) continue;
      const facts = await sharp(bytes)
        .metadata()
        .catch(() => undefined);
      if (facts === undefined || (facts.pages ?? 1) > 1 || facts.width < leastPx) continue;
      const format = ([...STILL_FORMATS, 'gif'] as const).find((it) => it === facts.format);
      if (format !== undefined) drawings.push({ format, widthPx: facts.width, bytes });
    }
  }
  return drawings;
}

/**
 * Writes drawings under ids from 0 up, in turn. Each drawing is there under many ids, as links to one file; to a server
 * they are different originals.
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
