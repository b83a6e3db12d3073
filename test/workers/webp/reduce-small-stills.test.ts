import sharp from 'sharp';
import { expect, test } from 'vitest';
import { render } from '../../../src/workers/child/render.ts';
import { anyJob, type RenderJob } from '../../support/processes/worker-pool.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';

/** Draws a lossless WebP of noise, whose averages differ from filtered pixels. */
async function drawNoise(edgePx: number): Promise<Buffer> {
  const noise = createSeededRandom('small webps');
  const pixels = Buffer.from(Array.from({ length: edgePx ** 2 * 3 }, () => noise.integer(255)));
  const raw = { width: edgePx, height: edgePx, channels: 3 } as const;
  return sharp(pixels, { raw }).webp({ lossless: true }).toBuffer();
}

const decode = (image: Uint8Array): Promise<Buffer> => sharp(image).raw().toBuffer();

const cases: [what: string, fromPx: number, toPx: number, job: object, isByDecoder: boolean][] = [
  ['is done by the decoder if the result is half as large', 256, 128, {}, true],
  ['is done by the decoder if the result is much smaller', 200, 32, {}, true],
  ['is done by the filter if the factor is below two', 200, 101, {}, false],
  ['is done by the filter if the original is not small', 258, 129, {}, false],
  ['is done by the filter at `lossless`', 200, 50, { shrinksOnLoad: false }, false],
  ['is done by the filter if the WebP has a profile or frames', 140, 50, { isPlain: false }, false],
];
test.each(cases)('the reduction of a small still WebP %s', async (_, fromPx, toPx, changes, is) => {
  const original = await drawNoise(fromPx);
  const job: RenderJob = {
    ...anyJob,
    source: 'webp',
    originalSize: { widthPx: fromPx, heightPx: fromPx },
    size: { widthPx: toPx, heightPx: toPx },
    resize: 'scale',
    shrinksOnLoad: true,
    isPlain: true,
    ...changes,
  };
  const byDecoder = sharp(original).resize(toPx, toPx, { fastShrinkOnLoad: true });
  const byFilter = sharp(original).resize(toPx, toPx, { fastShrinkOnLoad: false });
  const expected = await (is ? byDecoder : byFilter).raw().toBuffer();
  const other = await (is ? byFilter : byDecoder).raw().toBuffer();
  const rendered = await decode(await render(original, job));
  expect(rendered.equals(expected)).toBe(true);
  expect(rendered.equals(other)).toBe(false);
});
