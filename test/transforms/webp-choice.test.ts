import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { shareTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

/** Bytes of an animation of either form, by those of its lossless one (contract §3). */
const MAX_RATIO = 1.02;

const MAX_BYTES = 60_000;
const RECORDING = 'a recording of a screen';

const few = [
  'corpus/apng/imagers__ball.png',
  'corpus/emoji-small/parrot__parrot.gif',
  'corpus/gif-animated/sharp__rotating-squares.gif',
  'corpus/png-gamma/wuffs__red-blue-gradient.gamma1dot8.png',
  'corpus/png-gamma/wuffs__checkerboard.gamma1dot0.png',
  'corpus/webp-animated/imagewebp__random_lossy.webp',
  'originals/emojis/5',
  'originals/icons/1/ab12',
];

/** Of others, `lossless` at their own size is the original, which may have been lossy before. */
const all = ['corpus', 'golden-originals', 'originals/emojis', 'originals/stickers']
  .flatMap((folder) =>
    readdirSync(join('fixtures', folder), { recursive: true, encoding: 'utf8' }).map((file) =>
      join(folder, file),
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

// Of an animation in any case; of a still unless `high` and `low` are lossless themselves, which may be worth some
// bytes where chroma would be seen.
describe('a WebP is never both larger and worse than the lossless one: of', () => {
  const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
  const sizes = atScale([22, 128, 4096], [16, 22, 48, 64, 128, 4096]);
  const met = { still: new Set<string>(), animated: new Set<string>() };

  test.each([...new Set([...few, ...atScale([], all)]), RECORDING])(
    '%s',
    { timeout: 120_000 },
    async (name) => {
      const original =
        name === RECORDING ? await drawRecording() : readFileSync(join('fixtures', name));
      const ask = async (size: number, quality: string): Promise<Buffer> => {
        const path = `/avatars/{id}/x.webp?size=${size}&quality=${quality}&animated=true`;
        const { statusCode, rawPayload } = await app.serve(original, path);
        expect(statusCode, path).toBe(200);
        return rawPayload;
      };
      for (const size of sizes) {
        const lossless = await ask(size, 'lossless');
        const isAnimated = lossless.includes('ANIM');
        for (const quality of ['high', 'low']) {
          const given = await ask(size, quality);
          const isLossy = given.includes('VP8 ');
          met[isAnimated ? 'animated' : 'still'].add(isLossy ? 'lossy' : 'lossless');
          if (!isAnimated && !isLossy) continue;
          const mostBytes = lossless.length * (isAnimated ? MAX_RATIO : 1);
          expect(given.length, `${quality} at ${size}`).toBeLessThanOrEqual(mostBytes);
        }
      }
    },
  );

  test('stills and animations, of which both forms were met', () => {
    const both = new Set(['lossless', 'lossy']);
    expect(met).toEqual({ still: both, animated: both });
  });
});

/**
 * Draws a shaded picture with some specks that move from frame to frame, so large that it is encoded but once: what is
 * sent first is smaller when lossy, what is added by each further frame is several times larger.
 */
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
