import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { drawFilms, layOut, PHOTOS } from '../harness/drawings.ts';
import { sumOf } from '../harness/report.ts';
import { fetchOk, startService } from '../harness/service.ts';
import { HEAVY_FILMS } from '../overload/originals.ts';
import { type BytesRow, writeByteTable } from './byte-table.ts';

const FIXTURES = 'fixtures/originals';

const PHOTO_WIDTHS_PX = [24, 40, 80, 128, 240, 400, 640, 1024, 1280];
const DRAWING_WIDTHS_PX = [24, 48, 96, 128, 160, 320];
const FILM_WIDTHS_PX = [40, 80, 128, 160, 240, 300, 480];

const STILL_DRAWINGS = ['stickers/2', 'stickers/4', ...[1, 2, 3, 4, 5, 6, 7].map(toEmoji)];
const ANIMATED_DRAWINGS = [
  ...['1474444444444444445', '1', '3'].map((id) => `stickers/${id}`),
  ...['1473333333333333334', 9, 10, 11].map(toEmoji),
];

/** What is asked for to fill one row. */
interface Question extends Omit<BytesRow, 'points'> {
  readonly widthsPx: readonly number[];
  readonly paths: (widthPx: number) => readonly string[];
}

/** A picture of a row: pixels of a frame, bytes of a frame. */
type Point = readonly [pixels: number, bytes: number];

/**
 * Asks the built service for renderings of the fixtures, and of films made of them, and writes the table
 * of bytes that the simulation goes by. Once for a release: `npm run bench:scale -- --measure-bytes`.
 *
 * @throws Error if one of them does not come
 */
export async function measureBytes(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-films-'));
  try {
    const films = await drawFilms(HEAVY_FILMS);
    await layOut(folder, films, films.length, (id) => `stickers/${id}`);
    const filmQuestions = ['webp', 'gif'].map((format) =>
      askDrawings(
        'photo',
        films.map((_, id) => `stickers/${id}`),
        FILM_WIDTHS_PX,
        {
          format,
          quality: 'high',
          motion: 'animated',
        },
      ),
    );
    writeByteTable([
      ...(await ask(FIXTURES, listFixtureQuestions())),
      ...(await ask(folder, filmQuestions)),
      ...weighOriginals(FIXTURES, false),
      ...weighOriginals(folder, true),
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function toEmoji(id: number | string): string {
  return `emojis/${id}`;
}

function listFixtureQuestions(): readonly Question[] {
  const keys = PHOTOS.map((path) => path.slice(FIXTURES.length));
  const photos = ['webp', 'png', 'jpeg', 'gif'].map(
    (format): Question => ({
      of: 'result',
      content: 'photo',
      format,
      quality: 'high',
      motion: 'still',
      widthsPx: PHOTO_WIDTHS_PX,
      paths: (width) => keys.map((key) => `${key}?width=${width}&format=${format}&quality=high`),
    }),
  );
  const drawings = (['still', 'animated'] as const).flatMap((motion) =>
    ['webp high', 'webp lossless', 'gif high'].map((sort) => {
      const [format = '', quality = ''] = sort.split(' ');
      const own = motion === 'still' ? STILL_DRAWINGS : ANIMATED_DRAWINGS;
      return askDrawings('drawing', own, DRAWING_WIDTHS_PX, { format, quality, motion });
    }),
  );
  return [...photos, ...drawings];
}

/** Stickers and emojis, which are asked for by extension and size. */
function askDrawings(
  content: BytesRow['content'],
  keys: readonly string[],
  widthsPx: readonly number[],
  sort: Pick<BytesRow, 'format' | 'quality' | 'motion'>,
): Question {
  const { format, quality, motion } = sort;
  const rest = `quality=${quality}&animated=${motion === 'animated'}`;
  const paths = (width: number) => keys.map((key) => `/${key}.${format}?size=${width}&${rest}`);
  return { of: 'result', content, ...sort, widthsPx, paths };
}

async function ask(folder: string, questions: readonly Question[]): Promise<BytesRow[]> {
  const environment = { STORAGE_DIR: folder, CACHE_MEMORY_BYTES: '0', EXPLORER: 'off' };
  const service = await startService('scale-service', environment);
  try {
    const rows: BytesRow[] = [];
    for (const { widthsPx, paths, ...row } of questions) {
      const measured: Point[] = [];
      for (const path of widthsPx.flatMap(paths)) {
        const { body } = await fetchOk(service.origin, path);
        const facts = readImageFacts(body);
        if (facts === undefined) throw new Error(`${path} gets no image.`);
        measured.push([facts.widthPx * facts.heightPx, body.length / facts.frames]);
      }
      rows.push({ ...row, points: joinPoints(measured) });
    }
    return rows;
  } finally {
    await service.stop();
  }
}

/** Geometric means over each octave of edges; what is never enlarged comes out smaller than asked. */
function joinPoints(measured: readonly Point[]): Point[] {
  const octaves: Record<number, Point[]> = {};
  for (const point of measured) {
    const octave = Math.round(Math.log2(point[0]) / 2);
    octaves[octave] = [...(octaves[octave] ?? []), point];
  }
  const means = Object.values(octaves).map(
    (group): Point => [
      Math.round(geometricMean(group.map(([pixels]) => pixels))),
      Math.round(geometricMean(group.map(([, bytes]) => bytes))),
    ],
  );
  return means.sort(([one], [other]) => one - other);
}

/**
 * Bytes per pixel and frame of originals by content and format; what is no image, or an AVIF, is left out.
 *
 * @param isFilm of animations: whether those in here are films; the fixtures' are drawn
 */
function weighOriginals(folder: string, isFilm: boolean): BytesRow[] {
  const groups = new Map<string, { row: Omit<BytesRow, 'points'>; weights: number[] }>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const bytes = entry.isFile() ? readFileSync(path) : Buffer.of();
    const facts = readImageFacts(bytes);
    if (facts === undefined || facts.format === 'avif') continue;
    const { format, frames, animation, widthPx, heightPx } = facts;
    const motion = animation === undefined ? 'still' : 'animated';
    const isDrawing = motion === 'animated' ? !isFilm : /\/(emojis|stickers)\//.test(path);
    const content = isDrawing ? 'drawing' : 'photo';
    const row = { of: 'original', content, format, quality: 'any', motion } as const;
    const group = groups.get(JSON.stringify(row)) ?? { row, weights: [] };
    groups.set(JSON.stringify(row), group);
    group.weights.push(bytes.length / (widthPx * heightPx * frames));
  }
  return [...groups.values()].map(({ row, weights }) => ({
    ...row,
    points: [[1, Number(geometricMean(weights).toPrecision(3))]],
  }));
}

/** The mean of ratios: half as much and twice as much give as much. */
function geometricMean(values: readonly number[]): number {
  return Math.exp(sumOf(values, Math.log) / values.length);
}
