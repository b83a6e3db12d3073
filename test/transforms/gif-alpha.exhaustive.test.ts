import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { useTestApp } from '../support/test-app.ts';
import { describeGifAlpha } from './gif-alpha-run.ts';

const FIXTURES = join(import.meta.dirname, '../../fixtures');
const MAX_BYTES = 300_000;

/** Longer than a WebP can be, which they are compared with. */
const TOO_LONG = /needle|tall/;

const names = ['originals', 'golden-originals', 'corpus'].flatMap((folder) =>
  readdirSync(join(FIXTURES, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter(
      (name) => !/hostile|fuzz/.test(name) && !TOO_LONG.test(name) && isImage(join(FIXTURES, name)),
    )
    .sort(),
);

function isImage(file: string): boolean {
  const { size } = statSync(file);
  if (!statSync(file).isFile() || size > MAX_BYTES) return false;
  try {
    const facts = readImageFacts(readFileSync(file));
    return facts !== undefined && /gif|png|webp/.test(facts.format);
  } catch {
    return false;
  }
}

describe('a low GIF is transparent, white and black where its original is: of', () => {
  describeGifAlpha(names.map((name) => ({ name, read: () => readFileSync(join(FIXTURES, name)) })));
});

test('a low GIF of 100 megapixels has room in a worker', async () => {
  const app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
  const [edgePx, paper] = [10_000, '#fed'];
  const original = await sharp({
    create: { width: edgePx, height: edgePx, channels: 3, background: paper },
  })
    .png({ compressionLevel: 1 })
    .toBuffer();
  const path = '/attachments/1/{id}/x?format=gif&quality=low';
  const { statusCode, rawPayload } = await app.serve(original, path);
  expect(statusCode).toBe(200);
  expect(await sharp(rawPayload).metadata()).toMatchObject({ width: edgePx, height: edgePx });
  expect(app.workers.counters).toMatchObject({ restarts: 0, kills: 0 });
});
