import { link, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import sharp from 'sharp';
import type { OutputFormat, SourceFormat } from '../../src/contract/image-formats.ts';
import { readImageHeader } from '../../src/formats/containers.ts';
import { readFixtures } from './fixtures.ts';
import { Random } from './random.ts';

/** Photographs from which all drawings are cropped. */
export const PHOTOS = [
  'attachments/1/1/country-lane.jpg',
  'attachments/1/2/waterfall.jpg',
  'attachments/1/12/red-panda.jpg',
].map((key) => join('fixtures/originals', key));

/** Original that the benchmark created or found. */
interface Drawing {
  readonly format: SourceFormat;
  readonly widthPx: number;
  readonly bytes: Buffer;
}

/** Rendering that clients request from each server, with a URL of that server's API. */
export interface Rendering {
  /** Path of the original below the directory. */
  readonly path: string;
  readonly widthPx: number;
  readonly format: OutputFormat;
  readonly isAnimated: boolean;
  readonly darkroomPath: string;
}

interface Kind {
  readonly draw: (isQuick: boolean) => Promise<readonly Drawing[]>;
  readonly keyOf: (id: number, format: string) => string;
  readonly renderingsOf: (path: string, drawing: Drawing) => readonly Rendering[];
}

/** Photographs of 2 to 4 megapixels, and the widths of their renderings. */
const PHOTO_WIDTHS_PX = [1730, 2360, 1910, 2000, 2090, 2180, 2270, 1820, 2400, 1960, 2050, 2300];
const FIT_WIDTHS_PX = Array.from({ length: 17 }, (_, step) => 480 + 10 * step);
const sizeOfPhoto = (widthPx: number) => ({ widthPx, heightPx: Math.round((widthPx * 2) / 3) });

/** Edges of avatars that users upload. */
const AVATAR_EDGES_PX = [256, 512, 768, 1024];
const AVATAR_SIZES = [16, 32, 48, 64, 80, 100, 128, 160, 240, 256];
const EMOJI_SIZES = [20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80];
const STICKER_SIZES = [128, 160, 240, 256, 300];

const PICKER_PX = 48;

/** Edge of a photograph whose lossless render takes about 15 s of a core: the maximum duration of a render. */
const COSTLY_EDGE_PX = 5_000;

const kinds = {
  photos: {
    draw: (isQuick) =>
      drawStills((isQuick ? PHOTO_WIDTHS_PX.slice(0, 2) : PHOTO_WIDTHS_PX).map(sizeOfPhoto)),
    keyOf: (id, format) => `attachments/1/${id}/photo.${format}`,
    renderingsOf: (path) =>
      FIT_WIDTHS_PX.map((widthPx) => ({
        ...{ path, widthPx, format: 'webp', isAnimated: false },
        darkroomPath: `/${path}?width=${widthPx}&quality=high&format=webp`,
      })),
  },
  avatars: {
    draw: () => drawStills(AVATAR_EDGES_PX.map((edge) => ({ widthPx: edge, heightPx: edge }))),
    keyOf: (id) => `avatars/${id}/face`,
    renderingsOf: (path, { widthPx: edge }) =>
      ofAsset(
        path,
        AVATAR_SIZES.filter((size) => size < edge),
        ['webp', 'png'],
        false,
      ),
  },
  emojis: {
    draw: () => drawFilms(['gif', 96, 12], ['gif', 128, 24], ['webp', 96, 12], ['webp', 128, 24]),
    keyOf: (id) => `emojis/${id}`,
    renderingsOf: (path) => ofAsset(path, EMOJI_SIZES, ['webp', 'gif'], true),
  },
  stickers: {
    draw: () => drawFilms(['gif', 200, 16], ['gif', 320, 24], ['webp', 320, 24], ['webp', 480, 40]),
    keyOf: (id) => `stickers/${id}`,
    renderingsOf: (path) => ofAsset(path, STICKER_SIZES, ['webp'], true),
  },
  picker: {
    draw: async () => findStills(),
    keyOf: (id) => `icons/${id}/picked`,
    renderingsOf: (path) => ofAsset(path, [PICKER_PX], ['webp'], false),
  },
  costly: {
    draw: async () => {
      const image = sharp(PHOTOS[0]).resize(COSTLY_EDGE_PX, COSTLY_EDGE_PX).jpeg();
      return [{ format: 'jpeg', widthPx: COSTLY_EDGE_PX, bytes: await image.toBuffer() }];
    },
    keyOf: (id) => `attachments/2/${id}/photo.jpg`,
    renderingsOf: (path) => [
      {
        ...{ path, widthPx: COSTLY_EDGE_PX, format: 'webp', isAnimated: false },
        darkroomPath: `/${path}?format=webp&quality=lossless`,
      },
    ],
  },
} satisfies Readonly<Record<string, Kind>>;

/** More renderings than a contest requests, because it requests each once. */
const MANY = 20_000;

/** Directory of originals. */
export class Originals {
  readonly directory: string;
  readonly #isQuick: boolean;
  readonly #made = new Map<string, Promise<Rendering[]>>();

  constructor(directory: string, isQuick = false) {
    this.directory = directory;
    this.#isQuick = isQuick;
  }

  /** Lists at least `min` renderings of a kind, in random order; the first call draws their originals. */
  list(kind: keyof typeof kinds, min = MANY): Promise<readonly Rendering[]> {
    const making = this.#made.get(kind) ?? this.#make(kinds[kind], min);
    this.#made.set(kind, making);
    return making;
  }

  /** Writes drawings in turn, with ids from 0 up. Links give one file many ids: servers see different originals. */
  async #make({ draw, keyOf, renderingsOf }: Kind, min: number): Promise<Rendering[]> {
    const drawings = await draw(this.#isQuick);
    const files: string[] = [];
    const renderings: Rendering[] = [];
    for (let id = 0; renderings.length < min; id += 1) {
      const drawing = drawings[id % drawings.length];
      if (drawing === undefined) throw new Error('There are no drawings.');
      const path = keyOf(id, drawing.format);
      const file = join(this.directory, path);
      await mkdir(dirname(file), { recursive: true });
      const first = files[id % drawings.length];
      if (first === undefined) files.push(file);
      await (first === undefined ? writeFile(file, drawing.bytes) : link(first, file));
      renderings.push(...renderingsOf(path, drawing));
    }
    return new Random(1).shuffle(renderings);
  }
}

function ofAsset(
  path: string,
  sizesPx: readonly number[],
  formats: readonly OutputFormat[],
  isAnimated: boolean,
): Rendering[] {
  return sizesPx.flatMap((widthPx) =>
    formats.map((format) => {
      const animated = isAnimated && format === 'webp' ? '&animated=true' : '';
      const darkroomPath = `/${path}.${format}?size=${widthPx}&quality=high${animated}`;
      return { path, widthPx, format, isAnimated, darkroomPath };
    }),
  );
}

/** Draws each photograph in each size, as JPEG, PNG and WebP. */
function drawStills(
  sizes: readonly { readonly widthPx: number; readonly heightPx: number }[],
): Promise<Drawing[]> {
  return Promise.all(
    sizes.flatMap(({ widthPx, heightPx }) =>
      PHOTOS.flatMap((photo) =>
        (['jpeg', 'png', 'webp'] as const).map(async (format) => {
          const image = sharp(photo).resize(widthPx, heightPx);
          return { format, widthPx, bytes: await image.toFormat(format).toBuffer() };
        }),
      ),
    ),
  );
}

type Film = readonly [format: 'gif' | 'webp', edgePx: number, frames: number];

function drawFilms(...films: readonly Film[]): Promise<Drawing[]> {
  return Promise.all(films.flatMap((film) => PHOTOS.map((photo) => drawFilm(photo, film))));
}

/** Moves a camera over a photograph, so that all pixels change between frames, as in a video. */
async function drawFilm(photo: string, [format, widthPx, frames]: Film): Promise<Drawing> {
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
  const bytes = await sharp(pictures, { join: { animated: true } })
    .toFormat(format, { delay: 80, loop: 0, ...(format === 'webp' && { quality: 90 }) })
    .toBuffer();
  return { format, widthPx, bytes };
}

/** Directories below `fixtures` with stills that users would upload as emojis. */
const PICKED_DIRECTORIES = [
  ...['originals/emojis', 'originals/stickers', 'originals/avatars', 'originals/icons'],
  ...['corpus/png-8', 'corpus/png-alpha', 'corpus/png-palette', 'corpus/jpeg-photo'],
  ...['corpus/jpeg-sampling', 'corpus/gif-static', 'corpus/webp-alpha', 'corpus/webp-lossless'],
  'corpus/webp-lossy',
];
const MAX_PICKED_BYTES = 100_000;

/** Finds stills of the corpus and the samples that are at least as large as a picker's. */
function findStills(): Drawing[] {
  return PICKED_DIRECTORIES.flatMap(readFixtures).flatMap(({ bytes }) => {
    const header = readImageHeader(bytes);
    if (header === undefined || header.animation !== undefined || header.format === 'avif')
      return [];
    if (header.widthPx < PICKER_PX || bytes.length > MAX_PICKED_BYTES) return [];
    return [{ format: header.format, widthPx: header.widthPx, bytes }];
  });
}
