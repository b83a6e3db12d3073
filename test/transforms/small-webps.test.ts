import sharp from 'sharp';
import { expect, test } from 'vitest';
import { createSeededRandom } from '../support/seeded-random.ts';
import { shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();

/** Draws a lossless WebP of noise, whose averages differ from filtered pixels. */
async function drawNoise(edgePx: number, hasProfile: boolean): Promise<Buffer> {
  const noise = createSeededRandom('small webps');
  const pixels = Buffer.from(Array.from({ length: edgePx ** 2 * 3 }, () => noise.integer(255)));
  const image = sharp(pixels, { raw: { width: edgePx, height: edgePx, channels: 3 } });
  return (hasProfile ? image.withIccProfile('srgb') : image).webp({ lossless: true }).toBuffer();
}

const luminance = (image: Buffer): Promise<Buffer> => sharp(image).greyscale().raw().toBuffer();

/** Mean difference of the luminance, in levels. */
async function differenceOf(image: Buffer, other: Buffer): Promise<number> {
  const [pixels, others] = await Promise.all([luminance(image), luminance(other)]);
  expect(pixels.length).toBe(others.length);
  return (
    pixels.reduce((sum, level, at) => sum + Math.abs(level - (others[at] ?? 0)), 0) / pixels.length
  );
}

const cases: [what: string, fromPx: number, toPx: number, quality: string, reducer: string][] = [
  ['half as large', 256, 128, 'high', 'decoder'],
  ['much smaller', 200, 32, 'low', 'decoder'],
  ['more than half as large', 200, 101, 'high', 'filter'],
  ['of an original that is not small', 258, 129, 'high', 'filter'],
  ['at lossless', 200, 100, 'lossless', 'filter'],
  ['of an original with a profile', 200, 100, 'high with a profile', 'filter'],
];
test.each(cases)(
  'a rendering of a still WebP %s (%i to %i px, %s) is reduced by the %s',
  async (_, fromPx, toPx, quality, reducer) => {
    const original = await drawNoise(fromPx, quality.endsWith('profile'));
    const [name] = quality.split(' ');
    const path = `/attachments/1/{id}/a.webp?width=${toPx}&format=webp&quality=${name}`;
    const { statusCode, rawPayload } = await app.serve(original, path);
    expect(statusCode).toBe(200);
    const [byDecoder, byFilter] = await Promise.all(
      [true, false].map(async (fastShrinkOnLoad) => {
        const image = sharp(original).resize(toPx, toPx, { fastShrinkOnLoad });
        const settings = {
          low: { quality: 20 },
          high: { quality: 80 },
          lossless: { lossless: true },
        };
        const encoded = await image.webp(settings[name as keyof typeof settings]).toBuffer();
        return differenceOf(rawPayload, encoded);
      }),
    );
    const [expected, other] = reducer === 'decoder' ? [byDecoder, byFilter] : [byFilter, byDecoder];
    expect(expected).toBeLessThan(0.5);
    expect(other).toBeGreaterThan(1.5);
  },
);
