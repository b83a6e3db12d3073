import { hash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { shareTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

/** Maximum size of an animation at `high` and `low`, relative to `lossless` (contract §3). */
const MAX_RATIO = 1.02;

const MAX_BYTES = 60_000;
const RECORDING = 'a recording of a screen';

/** Excludes files that `lossless` returns unmodified at their own size, since they may be lossy. */
const all = ['corpus', 'golden-originals', 'originals/emojis', 'originals/stickers']
  .flatMap((directory) =>
    readdirSync(join('fixtures', directory), { recursive: true, encoding: 'utf8' }).map((file) =>
      join(directory, file),
    ),
  )
  .filter((name) => {
    const file = statSync(join('fixtures', name));
    return (
      file.isFile() &&
      file.size <= MAX_BYTES &&
      !/hostile|fuzz|webp|attachment|nonimage|other-image|svg|\.tsv$/.test(name)
    );
  })
  .sort();

const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });

async function request(original: Buffer, size: number, quality: string): Promise<Buffer> {
  const path = `/avatars/{id}/x.webp?size=${size}&quality=${quality}&animated=true`;
  const { statusCode, rawPayload } = await app.serve(original, path);
  expect(statusCode, path).toBe(200);
  return rawPayload;
}

const isLossy = (webp: Buffer): boolean => webp.includes('VP8 ');

/** Whether a rendering has at most 128 colours, alpha included, and at least eight pixels for each of them. */
async function hasFewColours(webp: Buffer): Promise<boolean> {
  const { data, info } = await sharp(webp)
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const pixels = new Uint32Array(data.buffer, data.byteOffset, data.length / 4);
  return new Set(pixels).size <= Math.min(128, (info.width * info.height) / 8);
}

/** Originals that have been encoded with loss. */
const isLossyOriginal = (original: Buffer): boolean =>
  original[0] === 0xff || isLossy(original) || original.includes('ftyp');

const few = [
  'corpus/apng/imagers__ball.png',
  'corpus/emoji-small/parrot__parrot.gif',
  'corpus/gif-animated/imagers__issue_1455_undersized.gif',
  'corpus/gif-animated/sharp__rotating-squares.gif',
  'corpus/gif-static/wuffs__bricks-dither.gif',
  'corpus/webp-animated/imagewebp__random_lossy.webp',
  'corpus/jpeg-orientation/exiforient__Landscape_1.jpg',
  'corpus/jpeg-progressive/imagers__test.jpg',
  'corpus/jpeg-gray/sharp__concert.jpg',
  'corpus/png-8/wuffs__hat.png',
  'corpus/png-8/wuffs__49.png',
  'corpus/png-alpha/sharp__test-pattern.png',
  'corpus/png-alpha/wuffs__hippopotamus.masked-with-muybridge.png',
  'corpus/png-gamma/wuffs__red-blue-gradient.vanilla.png',
  'corpus/png-gamma/wuffs__checkerboard.gamma1dot0.png',
  'corpus/png-palette/wuffs__bricks-dither.png',
  'corpus/png-interlaced/codeccorpus__basi3p02.png',
  'corpus/gif-static/imagers__alpha_gif_a.gif',
  'originals/emojis/1',
  'originals/emojis/2',
  'originals/emojis/3',
  'originals/emojis/4',
  'originals/emojis/5',
  'originals/emojis/6',
  'originals/emojis/7',
  'originals/emojis/9',
  'originals/icons/1/ab12',
  'originals/stickers/2',
  'originals/stickers/3',
  'originals/stickers/4',
];
const sizes = atScale(
  [22, 48, 128],
  [16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 4096],
);
/** Encodings of animations, and sizes of stills relative to the smaller encoding. */
const [encodings, ratios] = [new Set<boolean>(), [] as number[]];

test.each([...new Set([...few, ...atScale([], [...all, RECORDING])])])(
  'encodes an animation at most 1.02 times as large as lossless, and a still of few colours without loss: %s',
  { timeout: 240_000 },
  async (name) => {
    const original =
      name === RECORDING ? await drawRecording() : readFileSync(join('fixtures', name));
    const seen = new Set<string>();
    for (const size of name === RECORDING ? [4096] : sizes) {
      const exact = await request(original, size, 'lossless');
      // A small original has one rendering for many sizes.
      const digest = hash('sha256', exact);
      if (seen.has(digest)) continue;
      seen.add(digest);
      const isAnimated = exact.includes('ANIM');
      if (!isAnimated && size > 128) break;
      for (const [quality, factor] of [
        ['high', 80],
        ['low', 20],
      ] as const) {
        const rendered = await request(original, size, quality);
        if (isAnimated) {
          encodings.add(isLossy(rendered));
          expect(rendered.length / exact.length, `${quality} at ${size}`).toBeLessThanOrEqual(
            MAX_RATIO,
          );
        } else {
          const lossy = await sharp(exact).webp({ quality: factor }).toBuffer();
          ratios.push(rendered.length / Math.min(lossy.length, exact.length));
          const isLossless = !isLossyOriginal(original) && (await hasFewColours(exact));
          expect(isLossy(rendered), `${quality} at ${size}`).toBe(!isLossless);
        }
      }
      if (isAnimated && atScale(true, false)) break;
    }
  },
);

test('uses both encodings for animations, and at most 1.1 times the smaller encoding for stills', () => {
  expect(encodings).toEqual(new Set([true, false]));
  const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  expect(mean).toBeLessThanOrEqual(1.1);
});

/** Draws a shaded picture with moving specks: with loss, its first frame is smaller, others much larger. */
function drawRecording(): Promise<Buffer> {
  const [width, pageHeight, frames] = [1000, 175, 25];
  const pixels = new Uint8Array(width * pageHeight * frames);
  for (const at of pixels.keys()) {
    const [x, y] = [at % width, Math.floor(at / width) % pageHeight];
    const frame = Math.floor(at / (width * pageHeight));
    const isSpeck = (x * 2_654_435_761 + y * 40_503 + frame * 97) % 997 < 3;
    const shade = 128 + 60 * Math.sin(x / 40) + 50 * Math.cos(y / 20);
    pixels[at] = isSpeck ? 255 : Math.floor(shade / 4) * 4;
  }
  const raw = { width, height: pageHeight * frames, channels: 1, pageHeight } as const;
  return sharp(pixels, { raw }).gif({ effort: 1, dither: 0 }).toBuffer();
}
