import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { type DecodedImage, decodeImage } from '../support/images/image-comparison.ts';
import { readGifImages } from '../support/images/read-gif.ts';
import { shareTestApp, useTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

const MAX_BYTES = 300_000;

/** At its own size, if that is no larger, and small. */
const SIZES_PX = [4096, 44];

const WORDS = { clear: 0, white: 0xff_ff_ff_ff, black: 0xff_00_00_00 } as const;

const few = [
  'corpus/gif-static/imagers__alpha_gif_a.gif',
  'corpus/png-alpha/codeccorpus__bgan6a08.png',
  'originals/emojis/9',
  'originals/icons/1/ab12',
];

/** All that may be transparent, but what is longer than a WebP, which they are compared with, can be. */
const all = ['originals', 'golden-originals', 'corpus'].flatMap((folder) =>
  readdirSync(join('fixtures', folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter((name) => !/hostile|fuzz|needle|tall/.test(name) && isImage(join('fixtures', name)))
    .sort(),
);

function isImage(file: string): boolean {
  const stats = statSync(file);
  if (!stats.isFile() || stats.size > MAX_BYTES) return false;
  return /^(GIF8|.PNG|RIFF....WEBP)/s.test(readFileSync(file, 'latin1'));
}

describe('a low GIF is transparent, white and black where the lossless WebP is: of', () => {
  const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
  const names = atScale(few, all);
  let compared = 0;

  const ask = async (original: Buffer, way: string): Promise<Buffer> => {
    const { statusCode, rawPayload } = await app.serve(original, `/avatars/{id}/x.${way}`);
    expect(statusCode, way).toBe(200);
    return rawPayload;
  };

  test.each(names)('%s', { timeout: 120_000 }, async (name) => {
    const original = readFileSync(join('fixtures', name));
    for (const size of SIZES_PX) {
      const exact = await ask(original, `webp?size=${size}&quality=lossless&animated=true`);
      const gif = await ask(original, `gif?size=${size}&quality=low`);
      if (gif.equals(original)) continue; // which was smaller
      compared += 1;
      expect(count(await decodeImage(gif), await decodeImage(exact))).toEqual(noneMoved);
      const unknown = readGifImages(gif).filter(
        ({ palette_size: colours, indices, transparent_index }) =>
          (transparent_index ?? 0) >= colours || indices.some((index) => index >= colours),
      );
      expect(unknown).toEqual([]);
    }
  });

  test('nearly all of them were compared at both sizes', () => {
    expect(compared).toBeGreaterThan(names.length * SIZES_PX.length * 0.8);
  });
});

const largeEdgesPx = atScale([], [10_000]);
test.each(largeEdgesPx)(
  'a low GIF of %i² px has room in a worker',
  async (edgePx) => {
    const app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
    const original = await sharp({
      create: { width: edgePx, height: edgePx, channels: 3, background: '#fed' },
    })
      .png({ compressionLevel: 1 })
      .toBuffer();
    const path = '/attachments/1/{id}/x?format=gif&quality=low';
    const { statusCode, rawPayload } = await app.serve(original, path);
    expect(statusCode).toBe(200);
    expect(await sharp(rawPayload).metadata()).toMatchObject({ width: edgePx, height: edgePx });
    expect(app.workers.counters).toMatchObject({ restarts: 0, kills: 0 });
  },
  120_000,
);

const noneMoved = { isAlike: true, clear: 0, white: 0, black: 0 };

/** How many pixels are not what they should be: half of an opacity is enough to be seen in a GIF. */
function count(gif: DecodedImage, exact: DecodedImage): typeof noneMoved {
  const moved = { ...noneMoved, isAlike: gif.frames.length === exact.frames.length };
  for (const [index, frame] of exact.frames.entries()) {
    const wanted = toWords(frame);
    const shown = toWords(gif.frames[index] ?? new Uint8Array());
    moved.isAlike &&= wanted.length === shown.length;
    for (const [at, word] of wanted.entries()) {
      if (word === shown[at]) continue;
      for (const name of ['clear', 'white', 'black'] as const) {
        // The other way round, pixels may become white or black, but not transparent.
        const isLost = word === WORDS[name] || (name === 'clear' && shown[at] === WORDS.clear);
        if (isLost) moved[name] += 1;
      }
    }
  }
  return moved;
}

function toWords(rgba: Uint8Array): Uint32Array {
  const { buffer, byteOffset, byteLength } = Uint8Array.from(rgba);
  const words = new Uint32Array(buffer, byteOffset, byteLength / 4);
  return words.map((word) => (word >>> 24 < 128 ? WORDS.clear : (word | 0xff_00_00_00) >>> 0));
}
