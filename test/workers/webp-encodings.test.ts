import { expect, test } from 'vitest';
import { encodeAnimation, encodeStill } from '../../src/workers/child/encode.ts';
import { fromPixels, type Pixels } from '../../src/workers/child/pixels.ts';
import { anyJob, type RenderJob } from '../support/processes/worker-pool.ts';

/** Draws frames of so many colours, one below the other. */
function draw(widthPx: number, heightPx: number, colours: number, frames = 1): Pixels {
  const data = new Uint8Array(4 * widthPx * heightPx * frames);
  for (let at = 0; at < data.length; at += 4) {
    const colour = (at / 4) % colours;
    data.set([colour & 0xff, (colour >> 8) * 100, 90, 255], at);
  }
  return { data, widthPx, heightPx: heightPx * frames, channels: 4 };
}

const jobFor = (
  widthPx: number,
  heightPx: number,
  changes: Partial<RenderJob> = {},
): RenderJob => ({
  ...anyJob,
  format: 'webp',
  size: { widthPx, heightPx },
  ...changes,
});

const isLossless = (webp: Uint8Array): boolean => Buffer.from(webp).includes('VP8L');

test.each([
  ['128 colours', [32, 32], 128, true],
  ['129 colours', [64, 64], 129, false],
  ['eight pixels a colour', [16, 16], 32, true],
  ['fewer than eight pixels a colour', [16, 16], 33, false],
] as const)(
  'a still of %s is lossless at high and low: %s',
  async (_, [width, height], colours, expected) => {
    for (const quality of ['high', 'low'] as const) {
      const job = jobFor(width, height, { quality });
      const still = await encodeStill(fromPixels(draw(width, height, colours)), job);
      expect(isLossless(still), quality).toBe(expected);
    }
  },
);

test('a still of a lossy original is lossy, whatever its colours, except at lossless', async () => {
  const encode = (quality: RenderJob['quality']) =>
    encodeStill(fromPixels(draw(32, 32, 2)), jobFor(32, 32, { quality, isLossy: true }));
  expect(isLossless(await encode('high'))).toBe(false);
  expect(isLossless(await encode('low'))).toBe(false);
  expect(isLossless(await encode('lossless'))).toBe(true);
});

test('an animation of few colours in each frame has the bytes of lossless', async () => {
  const animation = { delaysMs: [50, 50, 50], plays: 0 };
  const encode = (quality: RenderJob['quality']) =>
    encodeAnimation(draw(32, 32, 100, 3), jobFor(32, 32, { quality }), animation);
  expect(await encode('high')).toEqual(await encode('lossless'));
  expect(await encode('low')).toEqual(await encode('lossless'));
});
