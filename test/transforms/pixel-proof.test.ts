import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { corpusFile } from '../formats/facts-of.ts';
import { decodeImage } from '../support/images/image-comparison.ts';
import { shareTestApp } from '../support/test-app.ts';

// What pictures look like, that nothing is left of metadata, and that bytes repeat, is told by the goldens; here is what can be proved without one.

const app = shareTestApp();

async function render(original: Uint8Array, way: string): Promise<Buffer> {
  const path = way.startsWith('?') ? `/attachments/1/{id}/x.png${way}` : `/avatars/{id}/${way}`;
  const { statusCode, rawPayload } = await app.serve(original, path);
  expect(statusCode).toBe(200);
  return rawPayload;
}

describe('the pixels of an opaque 8-bit sRGB png at its own width', () => {
  const original = corpusFile('png-8/wuffs__bricks-color.png');

  test.each([
    'x.webp?size=160&quality=lossless',
    'x.png?size=160&quality=lossless',
    'x.png?size=160',
    '?format=webp',
    '?format=png&quality=high',
  ])('are the same, bit by bit, as %s, also where it has to be cleaned', async (way) => {
    const named = sharp(original).withExif({ IFD0: { Artist: 'somebody' } });
    const { frames } = await decodeImage(original);
    for (const file of [original, await named.png().toBuffer()]) {
      const encoded = await render(file, way);
      expect(encoded.includes('somebody')).toBe(false);
      expect((await decodeImage(encoded)).frames).toEqual(frames);
    }
  });
});

test.each([
  // Measured in Chromium 156 at the middle of the picture; its exact sRGB curve against our 2.2.
  ['png-gamma/wuffs__red-blue-gradient.gamma1dot0.png', [188, 0, 188]],
  ['png-gamma/wuffs__red-blue-gradient.gamma1dot8.png', [146, 0, 147]],
  ['png-gamma/wuffs__red-blue-gradient.vanilla.png', [128, 0, 128]],
])('%s looks at every size as it does at its own', async (file, colour) => {
  for (const way of ['x.webp?size=240&quality=lossless', 'x.png?size=64']) {
    const image = await decodeImage(await render(corpusFile(file), way));
    const middle = Math.floor(image.heightPx / 2) * image.widthPx + Math.floor(image.widthPx / 2);
    const shown = image.frames[0]?.subarray(4 * middle) ?? [];
    const differences = colour.map((level, at) => Math.abs(level - (shown[at] ?? 0)));
    expect(Math.max(...differences)).toBeLessThanOrEqual(4);
  }
});
