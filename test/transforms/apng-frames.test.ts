import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { u32be } from '../formats/containers.ts';
import { apngDrawings } from '../support/images/apng-drawings.ts';
import { composeApng, composeStill } from '../support/images/compose-apng.ts';
import {
  type ApngChunk,
  type Draw,
  type DrawnApng,
  drawApng,
  drawApngChunks,
  formatChunks,
} from '../support/images/draw-apng.ts';
import { compareImages, decodeImage } from '../support/images/image-comparison.ts';
import { shareTestApp } from '../support/test-app.ts';

/** Exact pixels at the picture's own size. */
const ANIMATED = '/attachments/1/{id}/x?format=webp&animated=true';
const STILL = '/attachments/1/{id}/x?format=png';

const app = shareTestApp();
const show = async (original: Uint8Array, path: string) =>
  decodeImage((await app.serve(original, path)).rawPayload);

describe('the frames of an APNG', () => {
  test.each(apngDrawings)('$name', async ({ drawn }) => {
    const frames = composeApng(drawn).map(blankUnseen);
    const timing = {
      delaysMs: drawn.frames.map(({ delay: [part, of] = [1, 10] }) =>
        Math.round((part * 1000) / (of || 100)),
      ),
      plays: drawn.plays ?? 0,
    };
    const untimed = { delaysMs: undefined, plays: undefined };
    const { widthPx, heightPx } = drawn;
    const expected = { widthPx, heightPx, frames, ...(frames.length > 1 ? timing : untimed) };
    const shown = await show(drawApng(drawn), ANIMATED);
    const seen = { ...shown, frames: shown.frames.map(blankUnseen) };
    expect(compareImages(expected, seen, 'exact')).toEqual([]);
    const still = { widthPx, heightPx, frames: [composeStill(drawn)], ...untimed };
    expect(compareImages(still, await show(drawApng(drawn), STILL), 'exact')).toEqual([]);
  });
});

/** libwebp keeps no colours below an alpha of 0 in an animation. */
function blankUnseen(frame: Uint8Array): Uint8Array {
  return frame.map((sample, at) => (frame[at - (at % 4) + 3] === 0 ? 0 : sample));
}

const fade: Draw = (x, y) => [x * 8, y * 8, 255 - x * 4, 255 - y * 3];
const deep: Draw = (x, y) => fade(x, y).map((sample) => sample * 257);
const profiled = await sharp({ create: { width: 1, height: 1, channels: 4, background: '#fff' } })
  .withIccProfile('p3')
  .png()
  .toBuffer();
const at = profiled.indexOf('iCCP');

test.each([
  ['gAMA of 1', 'gAMA', u32be(100_000)],
  ['gAMA of 1 / 1.8', 'gAMA', u32be(55_556)],
  [
    'a profile of Display P3',
    'iCCP',
    profiled.subarray(at + 4, at + 4 + profiled.readUInt32BE(at - 4)),
  ],
])('%s means the same in the frames as in a still', async (_, type, data) => {
  for (const [bits, draw] of [
    [8, fade],
    [16, deep],
  ] as const) {
    const plain = {
      widthPx: 30,
      heightPx: 30,
      kind: { colour: 'rgba', bits },
      frames: [{ draw }],
    } as const;
    const film = drawApng({ ...plain, before: [{ type, data }], frames: [{ draw }, { draw }] });
    const [still] = (await show(film, STILL)).frames;
    if (bits === 8) expect(still).not.toEqual((await show(drawApng(plain), STILL)).frames[0]);
    expect((await show(film, ANIMATED)).frames).toEqual([still, still]);
  }
});

describe('an APNG', () => {
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
  ])('that %s is a still and no animation', async (_, change) => {
    const broken = formatChunks(change(drawApngChunks(film)));
    const animated = await app.serve(broken, '/stickers/{id}.webp');
    expect([animated.statusCode, animated.json().code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
    for (const path of ['/stickers/{id}.webp?animated=false', '/emojis/{id}.png']) {
      expect((await app.serve(broken, path)).statusCode).toBe(200);
    }
  });
});
