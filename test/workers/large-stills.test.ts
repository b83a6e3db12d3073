import sharp from 'sharp';
import { expect, test } from 'vitest';
import { encodeAnimation, encodeStill } from '../../src/workers/child/encode.ts';
import { fromPixels, type Pixels } from '../../src/workers/child/pixels.ts';
import { hasManyColours } from '../../src/workers/child/webp/few-colours.ts';
import { anyJob, type RenderJob } from '../support/processes/worker-pool.ts';

/** Draws vertical stripes, whose bytes differ in each encoding. */
function draw(widthPx: number, heightPx: number) {
  const data = new Uint8Array(3 * widthPx * heightPx);
  for (let at = 0; at < data.length; at += 1) data[at] = ((at % (3 * widthPx)) * 7) & 0xf0;
  return { data, widthPx, heightPx, channels: 3 } as const;
}

test.each([
  ['below 4 megapixels', 1_999, { effort: 4 }],
  ['from 4 megapixels on', 2_000, { effort: 0, quality: 20 }],
  ['of 16 megapixels', 8_000, { effort: 0, quality: 20 }],
])(
  'encodes a lossless still %s exactly, with the effort for its size',
  async (_, widthPx, settings) => {
    const pixels = draw(widthPx, 2_000);
    const size = { widthPx, heightPx: 2_000 };
    const job = { ...anyJob, size, format: 'webp', quality: 'lossless' } as const;
    const encoded = await encodeStill(fromPixels(pixels), job);
    const raw = { width: widthPx, height: 2_000, channels: 3 } as const;
    const wanted = sharp(pixels.data, { raw }).webp({ lossless: true, exact: true, ...settings });
    expect((await wanted.toBuffer()).equals(encoded)).toBe(true);
    expect((await sharp(encoded).raw().toBuffer()).equals(pixels.data)).toBe(true);
    // An operator's lower effort has precedence.
    const fastest = await encodeStill(fromPixels(pixels), { ...job, webpEffort: 0 });
    const least = wanted.clone().webp({ lossless: true, exact: true, ...settings, effort: 0 });
    expect((await least.toBuffer()).equals(fastest)).toBe(true);
  },
);

function drawColours(widthPx: number, heightPx: number, colours: number, frames = 1): Pixels {
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
  'encodes a still of %s without loss at high and low: %s',
  async (_, [width, height], colours, expected) => {
    for (const quality of ['high', 'low'] as const) {
      const job = jobFor(width, height, { quality });
      const still = await encodeStill(fromPixels(drawColours(width, height, colours)), job);
      expect(isLossless(still), quality).toBe(expected);
    }
  },
);

test('encodes a still of a lossy original with loss, regardless of its colours, except at `lossless`', async () => {
  const encode = (quality: RenderJob['quality']) =>
    encodeStill(fromPixels(drawColours(32, 32, 2)), jobFor(32, 32, { quality, isLossy: true }));
  expect(isLossless(await encode('high'))).toBe(false);
  expect(isLossless(await encode('low'))).toBe(false);
  expect(isLossless(await encode('lossless'))).toBe(true);
});

test('encodes an animation of few colours per frame as `lossless` does', async () => {
  const animation = { delaysMs: [50, 50, 50], plays: 0 };
  const encode = (quality: RenderJob['quality']) =>
    encodeAnimation(drawColours(32, 32, 100, 3), jobFor(32, 32, { quality }), animation);
  expect(await encode('high')).toEqual(await encode('lossless'));
  expect(await encode('low')).toEqual(await encode('lossless'));
});

test('counts many colours in a frame of at most a megapixel, to limit memory', () => {
  const [widthPx, heightPx] = [1024, 1025];
  const data = Buffer.alloc(widthPx * heightPx * 3);
  // Another colour for each pixel.
  for (let at = 0; at < data.length; at += 3) data.writeUIntBE((at / 3) & 0xffffff, at, 3);
  const isOfMany = (height: number): boolean => {
    const frame = { data: data.subarray(0, widthPx * height * 3), widthPx, channels: 3 } as const;
    return hasManyColours({ ...frame, heightPx: height }, { widthPx, heightPx: height });
  };
  expect([isOfMany(1024), isOfMany(1025)]).toEqual([true, false]);
});
