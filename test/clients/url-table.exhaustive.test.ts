import { readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestApp, readSample, type TestApp } from '../support/test-app.ts';
import {
  type ClientUrl,
  clientOriginalKeys,
  formatAskedBy,
  originalKeyOf,
  putClientOriginals,
  readClientUrls,
} from './client-urls.ts';

const rows = readClientUrls();

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
  putClientOriginals(app.originals);
});

afterAll(async () => {
  await app.close();
});

/** The rows of a status, each behind a title that names it. */
function titledRows(status: number): [string, ClientUrl][] {
  return rows
    .filter((row) => row.status === status)
    .map((row) => [`${row.client}, ${row.resource}, ${row.target}`, row]);
}

/** Asks with GET and HEAD, which must not differ but for the body; returns what GET got. */
async function ask(target: string): Promise<{
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}> {
  const response = await app.server.inject(target);
  const head = await app.server.inject({ method: 'HEAD', url: target });
  expect(head.statusCode).toBe(response.statusCode);
  expect(head.rawPayload).toHaveLength(0);
  for (const name of ['content-type', 'content-length', 'cache-control', 'etag']) {
    expect(head.headers[name], name).toBe(response.headers[name]);
  }
  expect(response.headers['content-length']).toBe(String(response.rawPayload.length));
  return { status: response.statusCode, headers: response.headers, body: response.rawPayload };
}

/**
 * The original behind a row, found without the code under test; `undefined` for default avatars.
 */
function originalOf({ target }: ClientUrl): Buffer | undefined {
  const key = originalKeyOf(target);
  return key === undefined ? undefined : readSample(key);
}

/** Width bound and animation by contract §2, spelt out here again: the test shares no code with Darkroom. */
function askedOf({ target }: ClientUrl): { readonly maxWidthPx: number; readonly moves: boolean } {
  const { pathname, searchParams } = new URL(target, 'http://cdn.test');
  const kind = pathname.startsWith('/attachments/')
    ? 'attachment'
    : pathname.startsWith('/stickers/')
      ? 'sticker'
      : 'asset';
  const width = searchParams.get(kind === 'attachment' ? 'width' : 'size');
  const animated = (searchParams.get('animated') ?? String(kind === 'sticker')) === 'true';
  const format = formatAskedBy(target);
  return {
    maxWidthPx: width !== null ? Number(width) : kind === 'asset' ? 128 : Number.POSITIVE_INFINITY,
    moves: (format === 'gif' && kind !== 'attachment') || (format === 'webp' && animated),
  };
}

describe('the URLs of clients', () => {
  test('are those of the table, all of them', () => {
    const document = readFileSync('docs/compatibility.md', 'utf8');
    const [, told] = /`fixtures\/client-urls\.tsv` lists (\d+) URLs/.exec(document) ?? [];
    expect(rows).toHaveLength(Number(told));
    const tried = [200, 400, 404].map((status) => titledRows(status).length);
    for (const count of tried) expect(count).toBeGreaterThan(0);
    expect(tried.reduce((sum, count) => sum + count)).toBe(rows.length);
  });

  test.each(titledRows(200))('%s: served', async (_, row) => {
    const { status, headers, body } = await ask(row.target);
    expect(status).toBe(200);
    const format = formatAskedBy(row.target);
    expect(headers['content-type']).toBe(`image/${format}`);
    const image = await sharp(body).metadata();
    expect(image.format).toBe(format);

    const original = originalOf(row);
    if (original === undefined) {
      expect(row.resource).toContain('default avatar');
      return;
    }
    const { width: originalWidth, pages: originalFrames = 1 } = await sharp(original).metadata();
    const { maxWidthPx, moves } = askedOf(row);
    expect(image.width).toBe(Math.min(maxWidthPx, originalWidth));
    expect(image.pages ?? 1).toBe(moves ? originalFrames : 1);
  });

  test.each(titledRows(400))('%s: breaks a rule', async (_, row) => {
    const { status, body } = await ask(row.target);
    expect(status).toBe(400);
    const { code, errors } = JSON.parse(body.toString());
    expect(code).toBe('INVALID_FORM_BODY');
    expect(errors).toEqual([
      { path: row.remark.includes(': size ') ? 'size' : 'ext', message: expect.any(String) },
    ]);
  });

  test.each(titledRows(404))('%s: no path', async (_, row) => {
    const { status, body } = await ask(row.target);
    expect(status).toBe(404);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'NOT_FOUND' });
  });

  test('need these originals, and no other object was looked for', () => {
    expect([...app.originals.reads.keys()].sort()).toEqual([...clientOriginalKeys].sort());
    expect(app.log.errors).toEqual([]);
  });
});
