import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { u32be } from '../formats/containers.ts';
import { corpusFile } from '../formats/facts-of.ts';
import {
  type ApngChunk,
  type Draw,
  type DrawnApng,
  drawApng,
  drawApngChunks,
  formatChunks,
} from '../support/images/draw-apng.ts';
import { decodeImage } from '../support/images/image-comparison.ts';
import { shareTestApp } from '../support/test-app.ts';

// What pictures look like, how frames are composed and timed, and that nothing is left of metadata, the goldens tell;
// here is what can be proved without one, and what no original of theirs has.

/** Exact pixels at the picture's own size. */
const ANIMATED = '/attachments/1/{id}/x?format=webp&animated=true';
const STILL = '/attachments/1/{id}/x?format=png';

const app = shareTestApp();
const show = async (original: Uint8Array, path: string) =>
  (await decodeImage((await app.serve(original, path)).rawPayload)).frames.map((frame) => [
    ...frame,
  ]);

test('a frame that is half transparent is blended over another one, rounded to the nearest', async () => {
  const drawn: DrawnApng = {
    widthPx: 1,
    heightPx: 1,
    frames: [
      { draw: () => [0, 100, 200, 50] },
      { draw: () => [200, 0, 0, 100], blend: 'over' }, // 25 500 and 7 750 parts of 33 250
      { draw: () => [255, 255, 255, 0], blend: 'over' },
    ],
  };
  const blended = [153, 23, 47, 130];
  const frames = await show(drawApng(drawn), ANIMATED);
  expect(frames).toEqual([[0, 100, 200, 50], blended, blended]);
});

test('a gAMA means the same in the frames of an APNG as in a still', async () => {
  const draw: Draw = (x, y) => [x * 8, y * 8, 255 - x * 4, 255 - y * 3];
  const plain: DrawnApng = { widthPx: 30, heightPx: 30, frames: [{ draw }, { draw }] };
  const film = drawApng({ ...plain, before: [{ type: 'gAMA', data: u32be(55_556) }] });
  const [still] = await show(film, STILL);
  expect([still]).not.toEqual(await show(drawApng(plain), STILL));
  expect(await show(film, ANIMATED)).toEqual([still, still]);
});

const draw = (): number[] => [200, 30, 90, 255];
const film: DrawnApng = {
  widthPx: 20,
  heightPx: 20,
  frames: [{ draw }, { draw: () => [0, 0, 0, 0], left: 4, top: 4, widthPx: 8, heightPx: 8 }],
};

test.each([
  ['says more frames than it has', (chunks: ApngChunk[]) => chunks.toSpliced(-3, 2)],
  [
    'has a frame whose data end early',
    (chunks: ApngChunk[]) => {
      const { type, data } = chunks.at(-2) ?? expect.fail();
      return chunks.with(-2, { type, data: data.subarray(0, -8) });
    },
  ],
])('an APNG that %s is a still and no animation', async (_, change) => {
  const broken = formatChunks(change(drawApngChunks(film)));
  const animated = await app.serve(broken, '/stickers/{id}.webp');
  expect([animated.statusCode, animated.json().code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
  for (const path of ['/stickers/{id}.webp?animated=false', '/emojis/{id}.png']) {
    expect((await app.serve(broken, path)).statusCode).toBe(200);
  }
});

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
