import sharp from 'sharp';
import { expect, test } from 'vitest';
import { encodeStill } from '../../src/workers/child/encode.ts';
import { fromPixels } from '../../src/workers/child/pixels.ts';
import { anyJob } from '../support/processes/worker-pool.ts';

/** A drawing of vertical stripes, of which each encoding has its own bytes. */
function draw(widthPx: number, heightPx: number) {
  const data = new Uint8Array(3 * widthPx * heightPx);
  for (let at = 0; at < data.length; at += 1) data[at] = ((at % (3 * widthPx)) * 7) & 0xf0;
  return { data, widthPx, heightPx, channels: 3 } as const;
}

test.each([
  ['below 4 megapixels', 1_999, { effort: 4 }],
  ['from 4 megapixels on', 2_000, { effort: 0, quality: 20 }],
  ['of 16 megapixels', 8_000, { effort: 0, quality: 20 }],
])('a lossless still %s is encoded with its effort, and exactly', async (_, widthPx, settings) => {
  const pixels = draw(widthPx, 2_000);
  const size = { widthPx, heightPx: 2_000 };
  const job = { ...anyJob, size, format: 'webp', quality: 'lossless' } as const;
  const encoded = await encodeStill(fromPixels(pixels), job);
  const raw = { width: widthPx, height: 2_000, channels: 3 } as const;
  const wanted = sharp(pixels.data, { raw }).webp({ lossless: true, exact: true, ...settings });
  expect((await wanted.toBuffer()).equals(encoded)).toBe(true);
  expect((await sharp(encoded).raw().toBuffer()).equals(pixels.data)).toBe(true);
  // An operator's lower effort stays.
  const fastest = await encodeStill(fromPixels(pixels), { ...job, webpEffort: 0 });
  const least = wanted.clone().webp({ lossless: true, exact: true, ...settings, effort: 0 });
  expect((await least.toBuffer()).equals(fastest)).toBe(true);
});
