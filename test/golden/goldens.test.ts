/**
 * Sends every row of `fixtures/goldens.tsv` to the service with real render workers, and compares responses with the
 * goldens pixel by pixel (contract §3): encoders round differently on other processors.
 *
 * Only `npm run goldens -- --update` writes: it creates missing and changed goldens and, without a name, deletes those
 * without a row. It never writes the properties in the table (size, delays, …).
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { outputFormats, sourceFormats } from '../../src/contract/image-formats.ts';
import { type MediaRequest, parseTarget } from '../../src/contract/media-request.ts';
import { resourceNames, resourceRows } from '../../src/contract/resources.ts';
import {
  compareImages,
  compareProperties,
  decodeImage,
} from '../support/images/image-comparison.ts';
import { shareTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { type ComparedRow, pageFile, removePage, writePage } from './golden-page.ts';
import { fixturesUrl, type GoldenRow, readGoldenTable } from './golden-table.ts';

/** Task of `npm run goldens`: `show`, or `update` and the beginning of the rows' names. */
const [task, chosen = ''] = process.env.GOLDENS?.split(' ') ?? [];
const isUpdating = task === 'update';

const allRows = readGoldenTable();
const rows = allRows.filter(({ name }) => name.startsWith(chosen));
const directory = fileURLToPath(new URL('expected', fixturesUrl));
let isPageWanted = task !== undefined;
const compared: ComparedRow[] = [];

const app = shareTestApp({ settings: { WORKERS: '2', TRANSFORM_TIMEOUT_MS: '60000' } });

beforeAll(removePage);

afterAll(async () => {
  if (isPageWanted) await writePage(compared);
}, 120_000);

const readOriginal = (original: string): Buffer =>
  readFileSync(new URL(encodeURI(original), fixturesUrl));

function readGolden(golden: string): Buffer | undefined {
  const file = path.join(directory, golden);
  return existsSync(file) ? readFileSync(file) : undefined;
}

/** Request of a row for its own original. */
function requestOf({ target }: GoldenRow, id = 1): MediaRequest {
  const parsed = parseTarget(target.replace('{id}', String(id)));
  return parsed.kind === 'media' ? parsed.request : expect.fail(`${target} is not a media path`);
}

let count = 0;

/** Requests a row, which is not cached yet, so that it is rendered. */
async function request(row: GoldenRow) {
  count += 1;
  app.originals.put(requestOf(row, count).originKey, readOriginal(row.original));
  return app.get(row.target.replace('{id}', String(count)));
}

describe.concurrent('the golden of', () => {
  test.each(rows)('$name', { timeout: 120_000 }, async (row) => {
    const { statusCode, headers, rawPayload } = await request(row);
    expect([statusCode, headers['content-type']]).toEqual([
      200,
      sourceFormats[row.format].mimeType,
    ]);
    const differences = [
      ...(await compareMetadata(row, rawPayload)),
      ...(await comparePixels(row, rawPayload)),
    ];
    if (differences.length > 0) isPageWanted = true;
    const { golden, original } = row;
    const expected = golden === undefined ? readOriginal(original) : readGolden(golden);
    compared.push({ row, expected, actual: rawPayload, differences });
    expect(differences, `see ${pageFile}`).toEqual([]);
  });
});

describe('the same request returns the same bytes:', () => {
  const stride = atScale(20, 6);
  const rendered = rows.filter(({ golden }) => golden !== undefined);

  test.each(rendered.filter((_, index) => index % stride === 0))('$name', async (row) => {
    const before = compared.find(({ row: { name } }) => name === row.name)?.actual;
    const { statusCode, headers, rawPayload } = await request(row);
    expect(statusCode).toBe(200);
    expect(headers['server-timing']).toContain('render');
    expect(rawPayload.equals(before ?? (await request(row)).rawPayload)).toBe(true);
  });
});

test('every golden has a row and is small', async () => {
  const named = new Set(allRows.flatMap(({ golden }) => golden ?? []));
  const stale = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (file) => path.extname(file) !== '' && !named.has(file),
  );
  if (isUpdating) for (const file of stale) await rm(path.join(directory, file));
  else expect(stale).toEqual([]);
  const bytes = [...named].reduce((sum, golden) => sum + (readGolden(golden)?.length ?? 0), 0);
  expect(bytes).toBeLessThan(8_000_000);
});

test('the table covers every kind, format, quality and orientation', async () => {
  // Unmodified originals do not count, since nothing renders them.
  const requests = allRows
    .filter(({ golden }) => golden !== undefined)
    .map((row) => requestOf(row));
  const stored = resourceNames.filter((name) => resourceRows[name].originKey !== undefined);
  expect(new Set(requests.map(({ resource }) => resource))).toEqual(new Set(stored));
  const formats = new Set([...Object.keys(outputFormats), undefined]);
  expect(new Set(requests.map(({ format }) => format))).toEqual(formats);
  expect(new Set(requests.map(({ quality }) => quality)).size).toBe(3);
  const rotated = allRows.filter(({ name }) => name.startsWith('orientation/'));
  const originals = [...new Set(rotated.map(({ original }) => original))];
  const metadata = await Promise.all(originals.map((each) => sharp(readOriginal(each)).metadata()));
  expect(new Set(metadata.map(({ orientation = 1 }) => orientation)).size).toBe(8);
});

async function compareMetadata(row: GoldenRow, body: Buffer): Promise<string[]> {
  const expected = {
    format: row.format,
    size: `${row.widthPx}x${row.heightPx}`,
    frames: row.delaysMs?.length ?? 1,
    delays: row.delaysMs?.join(' '),
    plays: row.plays,
  };
  const metadata = await sharp(body).metadata();
  const heifFormat = metadata.compression === 'hevc' ? 'heic' : 'avif';
  const isAnimated = (metadata.pages ?? 1) > 1 && row.format !== 'avif';
  const actual = {
    format: metadata.format === 'heif' ? heifFormat : metadata.format,
    size: `${metadata.width}x${metadata.pageHeight ?? metadata.height}`,
    frames: metadata.pages ?? 1,
    delays: isAnimated ? metadata.delay?.join(' ') : undefined,
    plays: isAnimated ? metadata.loop : undefined,
  };
  const differences = compareProperties(expected, actual);
  const { exif, icc, iptc, xmp, comments } = metadata;
  const hasMetadata =
    row.golden !== undefined && (exif ?? icc ?? iptc ?? xmp ?? comments) !== undefined;
  return hasMetadata ? [...differences, 'there is metadata in it'] : differences;
}

/** Compares pixels with the golden; when updating, replaces the golden by the response. */
async function comparePixels(
  { name, golden, pixels, original }: GoldenRow,
  body: Buffer,
): Promise<string[]> {
  if (golden === undefined || pixels === undefined) {
    return body.equals(readOriginal(original)) ? [] : ['the bytes are not the original’s'];
  }
  // Rows with the same golden must have equal results: the first writes, and the next run compares the others.
  const isAuthor = rows.find((other) => other.golden === golden)?.name === name;
  const expected = readGolden(golden);
  // Bytes are equal on the processor that drew the golden.
  if ((isUpdating && !isAuthor) || expected?.equals(body)) return [];
  const differences =
    expected === undefined
      ? [`there is no golden ${golden}`]
      : compareImages(await decodeImage(expected), await decodeImage(body), pixels);
  if (!isUpdating || differences.length === 0) return differences;
  const file = path.join(directory, golden);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, body);
  return [];
}
