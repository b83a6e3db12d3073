import sharp from 'sharp';
import { expect, test } from 'vitest';
import { u32be } from '../formats/containers.ts';
import { corpusFile } from '../formats/facts-of.ts';
import {
  type Draw,
  type DrawnApng,
  drawApng,
  drawApngChunks,
  formatChunks,
} from '../support/images/draw-apng.ts';
import { decodeImage } from '../support/images/image-comparison.ts';
import { shareTestApp, useTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

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

test('an APNG with a frame whose data end early is a still and no animation', async () => {
  const draw = (): number[] => [200, 30, 90, 255];
  const small = { draw, left: 4, top: 4, widthPx: 8, heightPx: 8 };
  const chunks = drawApngChunks({ widthPx: 20, heightPx: 20, frames: [{ draw }, small] });
  const { type, data } = chunks.at(-2) ?? expect.fail();
  const broken = formatChunks(chunks.with(-2, { type, data: data.subarray(0, -8) }));
  const animated = await app.serve(broken, '/stickers/{id}.webp');
  expect([animated.statusCode, animated.json().code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
  for (const path of ['/stickers/{id}.webp?animated=false', '/emojis/{id}.png']) {
    expect((await app.serve(broken, path)).statusCode).toBe(200);
  }
});

test.each([
  // Measured in Chromium 156 at the middle of the picture; its exact sRGB curve against our 2.2.
  ['png-gamma/wuffs__red-blue-gradient.gamma1dot0.png', [188, 0, 188]],
  ['png-gamma/wuffs__red-blue-gradient.gamma1dot8.png', [146, 0, 147]],
  ['png-gamma/wuffs__red-blue-gradient.vanilla.png', [128, 0, 128]],
])('%s looks at every size as it does at its own', async (file, colour) => {
  for (const way of ['x.webp?size=240&quality=lossless', 'x.png?size=64']) {
    const { rawPayload } = await app.serve(corpusFile(file), `/avatars/{id}/${way}`);
    const image = await decodeImage(rawPayload);
    const middle = Math.floor(image.heightPx / 2) * image.widthPx + Math.floor(image.widthPx / 2);
    const shown = image.frames[0]?.subarray(4 * middle) ?? [];
    const differences = colour.map((level, at) => Math.abs(level - (shown[at] ?? 0)));
    expect(Math.max(...differences)).toBeLessThanOrEqual(4);
  }
});

test.each(atScale([], [10_000]))(
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
