/**
 * Compares what the service sends with the goldens, pixel by pixel (contract §3), through its HTTP surface
 * and real render workers: rows of `fixtures/goldens.tsv`.
 *
 * A missing golden fails, and so does one that no row names. Only
 *
 *     UPDATE_GOLDENS=1 npx vitest run test/golden
 *
 * writes: goldens that are missing or no longer match, and nothing else; it deletes those that no
 * row names. Facts in the table (size, delays, …) are never written by it. Look at every changed
 * file before committing it. A failure leaves its files below `test-report`.
 *
 * Bytes are not compared with the golden, for encoders round differently from processor to
 * processor; that one request gives the same bytes twice is tested by itself.
 */

import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { sourceFormats } from '../../src/contract/image-formats.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { MemoryOrigin } from '../support/memory-origin.ts';
import { patient } from '../support/patient.ts';
import { STARTER } from '../support/processes/worker-pool.ts';
import { GoldenFiles, keepFailure } from './golden-files.ts';
import { fixturesUrl, type GoldenRow, readGoldenTable } from './golden-table.ts';

const table = readGoldenTable();
const isUpdating = process.env.UPDATE_GOLDENS === '1';

/** The files of the goldens. */
export const goldens = new GoldenFiles(fileURLToPath(new URL('expected', fixturesUrl)), {
  isUpdating,
});

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/**
 * Tests that rows come out as their goldens say, and that some of them, rendered twice, come out the same.
 *
 * @param reportName of the folder of failures, below `test-report/`
 * @param stride every so many rows, one is rendered twice
 */
export function describeGoldens(
  reportName: string,
  rows: readonly GoldenRow[],
  stride: number,
): void {
  const reports = fileURLToPath(new URL(`../../test-report/${reportName}`, import.meta.url));
  let app: App;

  beforeAll(async () => {
    await rm(reports, { recursive: true, force: true });
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
        workerFiles: { starterFile: STARTER },
      },
    );
  });

  afterAll(() => app.close());

  describe.concurrent('goldens', () => {
    test.each(rows)('$name', async (row) => {
      const response = await request(app, row.target);
      const differences = await findDifferences(row, response);
      if (differences.length > 0) {
        const files = { expected: readExpected(row), actual: response.body };
        const extension = extname(row.golden ?? row.original);
        await keepFailure(join(reports, row.name), extension, files);
      }
      expect(differences).toEqual([]);
    });
  });

  // Not beside the goldens: one of them that is still being rendered would be shared.
  describe('the same request gives the same bytes', () => {
    const sample = rows.filter(({ golden }, index) => golden !== undefined && index % stride === 0);

    test.each(sample)('$name', async ({ target }) => {
      // One after the other: two at once would share one render.
      const [one, other] = [await request(app, target), await request(app, target)];
      expect([one.status, other.status]).toEqual([200, 200]);
      expect([one.isRendered, other.isRendered]).toEqual([true, true]);
      expect(Buffer.compare(one.body, other.body)).toBe(0);
    });
  });
}

interface GoldenResponse {
  readonly status: number;
  readonly contentType: unknown;
  /** Rendered for this request alone, says its `Server-Timing`. */
  readonly isRendered: boolean;
  readonly body: Buffer;
}

async function request(app: App, target: string): Promise<GoldenResponse> {
  const { rawPayload, headers, statusCode } = await app.server.inject({ url: target });
  return {
    status: statusCode,
    contentType: headers['content-type'],
    isRendered: String(headers['server-timing']).includes('render'),
    body: rawPayload,
  };
}

async function findDifferences(row: GoldenRow, response: GoldenResponse): Promise<string[]> {
  const { mimeType } = sourceFormats[row.format];
  if (response.status !== 200 || response.contentType !== mimeType) {
    return [`${response.status} ${response.contentType}, not 200 ${mimeType}`];
  }
  return [
    ...(await compareFacts(row, response.body)),
    ...(await comparePixels(row, response.body)),
  ];
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
  const heifFormat = metadata.compression === 'hevc' ? 'heic' : 'avif';
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
      format: metadata.format === 'heif' ? heifFormat : metadata.format,
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
  const isAuthor = table.find((other) => other.golden === golden)?.name === row.name;
  return isUpdating && !isAuthor ? [] : goldens.compare(golden, body, pixels);
}

/** Reads the original of a row. */
export function readOriginal(original: string): Buffer {
  return readFileSync(new URL(encodeURI(original), fixturesUrl));
}

/** Reads what a row must come out as; `undefined` where that is missing. */
export function readExpected({ golden, original }: GoldenRow): Buffer | undefined {
  return golden === undefined ? readOriginal(original) : goldens.read(golden);
}
