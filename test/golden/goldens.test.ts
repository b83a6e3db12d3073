/**
 * Goldens: what the service answers, pixel by pixel (contract §3), through its HTTP surface and real
 * render workers, for every row of `fixtures/goldens.tsv`.
 *
 * A missing golden fails, and so does one that no row names. Only
 *
 *     UPDATE_GOLDENS=1 npx vitest run test/golden
 *
 * writes: goldens that are missing or no longer match, and nothing else; it deletes those that no
 * row names. Facts in the table (size, delays, …) are never written by it. Look at every changed
 * file before committing it. A failure leaves `test-report/goldens.html`.
 *
 * Bytes are not compared with the golden, for encoders round differently from processor to
 * processor; that one request gives the same bytes twice is tested by itself.
 */

import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { outputFormats, sourceFormats } from '../../src/contract/image-formats.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { resourceRows } from '../../src/contract/resources.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { type GoldenFailure, writeGoldenReport } from '../support/images/golden-report.ts';
import { MemoryOrigin } from '../support/memory-origin.ts';
import { patient } from '../support/patient.ts';
import { GoldenFiles } from './golden-files.ts';
import { fixturesUrl, type GoldenRow, readGoldenTable } from './golden-table.ts';

const rows = readGoldenTable();
const reportFile = fileURLToPath(new URL('../../test-report/goldens.html', import.meta.url));
const isUpdating = process.env.UPDATE_GOLDENS === '1';
const goldens = new GoldenFiles(fileURLToPath(new URL('expected', fixturesUrl)), { isUpdating });
/** Every so many rows, one is rendered twice. */
const DETERMINISM_STRIDE = 6;

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const failures: GoldenFailure[] = [];
let app: App;

beforeAll(async () => {
  const origin = new MemoryOrigin();
  for (const { target, original } of rows) {
    const parsed = parseTarget(target);
    if (parsed.kind === 'media') origin.put(parsed.request.originKey, readOriginal(original));
  }
  // Without a cache every request is rendered.
  app = await createApp(
    readConfig({ CACHE_MEMORY_BYTES: '0', ...patient, TRANSFORM_TIMEOUT_MS: '60000' }),
    {
      log: silent,
      origin,
      workerFile: new URL('../../dist/workers/child/main.js', import.meta.url),
    },
  );
});

afterAll(async () => {
  await app.close();
  await rm(reportFile, { force: true });
  if (failures.length > 0) await writeGoldenReport(reportFile, failures);
});

describe.concurrent('goldens', () => {
  test.each(rows)('$name', async (row) => {
    const answer = await request(row.target);
    const differences = await findDifferences(row, answer);
    if (differences.length > 0) {
      const { name, target } = row;
      const actual = answer.status === 200 ? answer.body : undefined;
      failures.push({ name, target, differences, expected: readExpected(row), actual });
    }
    expect(differences).toEqual([]);
  });
});

// Not beside the goldens: one of them that is still being rendered would be shared.
describe('the same request gives the same bytes', () => {
  const sample = rows.filter(
    ({ golden }, index) => golden !== undefined && index % DETERMINISM_STRIDE === 0,
  );

  test.each(sample)('$name', async ({ target }) => {
    // One after the other: two at once would share one render.
    const [one, other] = [await request(target), await request(target)];
    expect([one.status, other.status]).toEqual([200, 200]);
    expect([one.isRendered, other.isRendered]).toEqual([true, true]);
    expect(Buffer.compare(one.body, other.body)).toBe(0);
  });
});

test('every golden has a row, and they are small', async () => {
  const named = new Set(rows.flatMap(({ golden }) => golden ?? []));
  expect(await goldens.findStale(named)).toEqual([]);
  const bytes = [...named].reduce((sum, golden) => sum + (goldens.read(golden)?.length ?? 0), 0);
  expect(bytes).toBeLessThan(8_000_000);
});

test.each(['png', 'jpg', 'webp', 'gif', 'animated-gif', 'animated-webp'])(
  'a %s of low quality is smaller than one of high quality',
  (name) => {
    const size = (quality: string): number => {
      const row = rows.find((candidate) => candidate.name === `quality/${name}-${quality}`);
      return (row && readExpected(row)?.length) ?? 0;
    };
    expect(size('low')).toBeGreaterThan(0);
    expect(size('low')).toBeLessThan(size('high'));
    expect(size('high')).toBeLessThanOrEqual(size('lossless'));
  },
);

const stored = Object.entries(resourceRows).filter(([, { originKey }]) => originKey !== undefined);

test.each(stored.map(([resource]) => resource))(
  'of the kind "%s" there is a golden',
  (resource) => {
    const own = rows.filter(({ target }) => {
      const parsed = parseTarget(target);
      return parsed.kind === 'media' && parsed.request.resource === resource;
    });
    // The original's own bytes would show that it is found, but not that it is rendered.
    expect(own.flatMap(({ golden }) => golden ?? []).length).toBeGreaterThan(0);
  },
);

test('the table covers every format, quality and orientation', () => {
  expect(rows.length).toBeGreaterThanOrEqual(120);
  const requests = rows.map(({ target }) => parseTarget(target));
  const values = (read: (row: (typeof requests)[number]) => unknown): Set<unknown> =>
    new Set(requests.map(read));
  // Every format by name, and the original's own.
  expect(values((r) => r.kind === 'media' && r.request.format)).toEqual(
    new Set([...Object.keys(outputFormats), undefined]),
  );
  expect(values((r) => r.kind === 'media' && r.request.quality).size).toBe(3);
  const orientations = rows.map(({ original }) => readImageFacts(readOriginal(original)));
  expect(new Set(orientations.map((facts) => facts?.orientation)).size).toBe(8);
});

interface Answer {
  readonly status: number;
  readonly contentType: unknown;
  /** Rendered for this request alone, says its `Server-Timing`. */
  readonly isRendered: boolean;
  readonly body: Buffer;
}

async function request(target: string): Promise<Answer> {
  const { rawPayload, headers, statusCode } = await app.server.inject({ url: target });
  return {
    status: statusCode,
    contentType: headers['content-type'],
    isRendered: String(headers['server-timing']).includes('render'),
    body: rawPayload,
  };
}

async function findDifferences(row: GoldenRow, answer: Answer): Promise<string[]> {
  const { mimeType } = sourceFormats[row.format];
  if (answer.status !== 200 || answer.contentType !== mimeType) {
    return [`${answer.status} ${answer.contentType}, not 200 ${mimeType}`];
  }
  return [...(await compareFacts(row, answer.body)), ...(await comparePixels(row, answer.body))];
}

/** What tells the bytes themselves, by two readers: sharp and the service's own. */
async function compareFacts(row: GoldenRow, body: Buffer): Promise<string[]> {
  const frames = row.delaysMs?.length ?? 1;
  const wanted = {
    format: row.format,
    size: `${row.widthPx}x${row.heightPx}`,
    frames,
    delays: row.delaysMs?.join(' '),
    plays: row.plays,
  };
  const facts = readImageFacts(body);
  const metadata = await sharp(body).metadata();
  const isAnimated = (metadata.pages ?? 1) > 1 && row.format !== 'avif';
  const given = {
    facts: {
      format: facts?.format,
      size: `${facts?.widthPx}x${facts?.heightPx}`,
      frames: facts?.frames,
      delays: facts?.animation?.delaysMs.join(' '),
      plays: facts?.animation?.plays,
    },
    sharp: {
      format: metadata.format === 'heif' ? 'avif' : metadata.format,
      size: `${metadata.width}x${metadata.pageHeight ?? metadata.height}`,
      frames: metadata.pages ?? 1,
      delays: isAnimated ? metadata.delay?.join(' ') : undefined,
      plays: isAnimated ? metadata.loop : undefined,
    },
  };
  const differences = (Object.keys(given) as (keyof typeof given)[]).flatMap((reader) =>
    (Object.keys(wanted) as (keyof typeof wanted)[])
      .filter((fact) => given[reader][fact] !== wanted[fact])
      .map((fact) => `${reader}: ${fact} ${given[reader][fact]}, not ${wanted[fact]}`),
  );
  const { exif, icc, iptc, xmp } = metadata;
  const hasMetadata = row.golden !== undefined && (exif ?? icc ?? iptc ?? xmp) !== undefined;
  return hasMetadata ? [...differences, 'there is metadata in it'] : differences;
}

async function comparePixels(row: GoldenRow, body: Buffer): Promise<string[]> {
  const { golden, pixels } = row;
  if (golden === undefined || pixels === 'passthrough') {
    return body.equals(readOriginal(row.original)) ? [] : ['the bytes are not the original’s'];
  }
  // Rows that share a golden must come out alike: the first writes, the next run compares the rest.
  const isAuthor = rows.find((other) => other.golden === golden) === row;
  return isUpdating && !isAuthor ? [] : goldens.compare(golden, body, pixels);
}

function readOriginal(original: string): Buffer {
  return readFileSync(new URL(encodeURI(original), fixturesUrl));
}

function readExpected({ golden, original }: GoldenRow): Buffer | undefined {
  return golden === undefined ? readOriginal(original) : goldens.read(golden);
}
