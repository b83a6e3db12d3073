import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OutputFormat, Quality } from '../../src/contract/image-formats.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { get, HttpClient } from '../harness/exchange.ts';
import { type Service, startService } from '../harness/service.ts';
import { makeOriginals } from '../overload/originals.ts';
import type { Content, OriginalBytesRow, ResultBytesRow } from './byte-table.ts';
import { geometricMean, groupBy } from './groups.ts';
import { listFiles, weighOriginals } from './original-weights.ts';

const FIXTURES = 'fixtures/originals';
const TABLE = 'bench/scale/result-bytes.ts';

/** Photographs of some megapixels, as attachments: these give any width. */
const PHOTOS = ['1/country-lane.jpg', '2/waterfall.jpg', '12/red-panda.jpg'];
const PHOTO_WIDTHS_PX = [24, 40, 80, 128, 240, 400, 640, 1024, 1280];
const DRAWING_WIDTHS_PX = [24, 48, 96, 128, 160, 320];
const FILM_WIDTHS_PX = [40, 80, 128, 160, 240, 300, 480];
const FILMS = 12;

/** What is asked for to fill one row: paths by width. */
interface Question {
  readonly content: Content;
  readonly format: OutputFormat;
  readonly quality: Quality;
  readonly isAnimated: boolean;
  readonly widthsPx: readonly number[];
  readonly paths: (widthPx: number) => readonly string[];
}

/**
 * Asks the built service for renderings of the fixtures, and of films made of them, and writes the table
 * of bytes that the simulation goes by. Once for a release: `npm run bench:scale -- --measure-bytes`.
 *
 * @throws Error if one of them is not answered with an image
 */
export async function measureBytes(logFile: string): Promise<void> {
  const films = await makeOriginals(36, FILMS * 5);
  try {
    const ofFixtures = await ask(FIXTURES, fixtureQuestions(), logFile);
    const ofFilms = await ask(films.folder, filmQuestions(), logFile);
    const originals = [
      ...weighOriginals(listFiles(FIXTURES), false),
      ...weighOriginals(listFiles(join(films.folder, 'stickers')), true),
    ];
    writeFileSync(TABLE, formatTable([...ofFixtures, ...ofFilms], originals));
  } finally {
    await films.remove();
  }
}

function fixtureQuestions(): readonly Question[] {
  const photo = (format: OutputFormat, quality: Quality): Question => ({
    content: 'photo',
    format,
    quality,
    isAnimated: false,
    widthsPx: PHOTO_WIDTHS_PX,
    paths: (width) =>
      PHOTOS.map(
        (name) => `/attachments/1/${name}?width=${width}&format=${format}&quality=${quality}`,
      ),
  });
  const drawing = (format: OutputFormat, quality: Quality, isAnimated: boolean): Question => ({
    content: 'drawing',
    format,
    quality,
    isAnimated,
    widthsPx: DRAWING_WIDTHS_PX,
    paths: (width) => {
      const query = `.${format}?size=${width}&quality=${quality}&animated=${isAnimated}`;
      const stickers = isAnimated ? ['1474444444444444445', '1', '3'] : ['2', '4'];
      const emojis = isAnimated
        ? ['1473333333333333334', '9', '10', '11']
        : ['1', '2', '3', '4', '5', '6', '7'];
      return [
        ...stickers.map((id) => `/stickers/${id}${query}`),
        ...emojis.map((id) => `/emojis/${id}${query}`),
      ];
    },
  });
  return [
    photo('webp', 'high'),
    photo('png', 'high'),
    photo('jpeg', 'high'),
    photo('gif', 'high'),
    drawing('webp', 'high', false),
    drawing('webp', 'lossless', false),
    drawing('gif', 'high', false),
    drawing('webp', 'high', true),
    drawing('webp', 'lossless', true),
    drawing('gif', 'high', true),
  ];
}

function filmQuestions(): readonly Question[] {
  const film = (format: OutputFormat): Question => ({
    content: 'photo',
    format,
    quality: 'high',
    isAnimated: true,
    widthsPx: FILM_WIDTHS_PX,
    paths: (width) =>
      Array.from(
        { length: FILMS },
        (_, id) => `/stickers/${id}.${format}?size=${width}&quality=high`,
      ),
  });
  return [film('webp'), film('gif')];
}

async function ask(
  folder: string,
  questions: readonly Question[],
  logFile: string,
): Promise<ResultBytesRow[]> {
  const service = await startService({ STORAGE_DIR: folder, CACHE_MEMORY_BYTES: '0' }, logFile);
  try {
    const rows: ResultBytesRow[] = [];
    for (const { widthsPx, paths, ...row } of questions) {
      const measured: Measured[] = [];
      for (const width of widthsPx) {
        for (const path of paths(width)) measured.push(await measure(service, path));
      }
      rows.push({ ...row, points: joinPoints(measured) });
    }
    return rows;
  } finally {
    await service.stop(5_000);
  }
}

/** Of one picture: pixels of a frame, bytes of a frame. */
interface Measured {
  readonly pixels: number;
  readonly bytes: number;
}

async function measure({ origin }: Service, path: string): Promise<Measured> {
  const client = new HttpClient(origin);
  const { status, body } = await client.ask(get(path));
  client.close();
  const facts = status === 200 ? readImageFacts(body) : undefined;
  if (facts === undefined) throw new Error(`${path} is answered with ${status}.`);
  return { pixels: facts.widthPx * facts.heightPx, bytes: body.length / facts.frames };
}

/** Geometric means over each octave of edges; what is never enlarged comes out smaller than asked. */
function joinPoints(measured: readonly Measured[]): [number, number][] {
  return groupBy(measured, ({ pixels }) => Math.round(Math.log2(pixels) / 2))
    .map((group): [number, number] => [
      Math.round(geometricMean(group.map(({ pixels }) => pixels))),
      Math.round(geometricMean(group.map(({ bytes }) => bytes))),
    ])
    .sort(([one], [other]) => one - other);
}

function formatTable(
  results: readonly ResultBytesRow[],
  originals: readonly OriginalBytesRow[],
): string {
  const literal = (value: unknown): string =>
    JSON.stringify(value, undefined, 2).replaceAll('"', "'");
  return `import type { OriginalBytesRow, ResultBytesRow } from './byte-table.ts';

// Written by \`npm run bench:scale -- --measure-bytes\`; then \`npx biome check --write\`.

/** Bytes of results, measured by asking the service for renderings of the fixtures. */
export const resultBytes: readonly ResultBytesRow[] = ${literal(results)};

/** Bytes of the originals themselves. */
export const originalBytes: readonly OriginalBytesRow[] = ${literal(originals)};
`;
}
