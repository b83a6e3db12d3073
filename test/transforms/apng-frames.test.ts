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
import {
  compareImages,
  type DecodedImage,
  decodeImage,
} from '../support/images/image-comparison.ts';
import { shareTestApp } from '../support/test-app.ts';

/** Exact pixels at the picture's own size. */
const ANIMATED = '/attachments/1/{id}/x?format=webp&animated=true';

const app = shareTestApp();
const ask = (original: Uint8Array, path: string) => app.serve(original, path);

describe('the frames of an APNG', () => {
  test.each(apngDrawings)('$name', async ({ drawn }) => {
    const { statusCode, rawPayload, headers } = await ask(drawApng(drawn), ANIMATED);
    expect([statusCode, headers['content-type']]).toEqual([200, 'image/webp']);
    const shown = await decodeImage(rawPayload);
    expect(compareImages(expectedImage(drawn), withoutUnseen(shown), 'exact')).toEqual([]);
    const still = await ask(drawApng(drawn), '/attachments/1/{id}/x?format=png');
    const picture = await decodeImage(still.rawPayload);
    const shape = { ...picture, delaysMs: undefined, plays: undefined };
    expect(compareImages({ ...shape, frames: [composeStill(drawn)] }, picture, 'exact')).toEqual(
      [],
    );
  });
});

describe('what tells the meaning of samples', () => {
  const fade: Draw = (x, y) => [x * 8, y * 8, 255 - x * 4, 255 - y * 3];
  const deep: Draw = (x, y) => fade(x, y).map((sample) => sample * 257);
  const profiled = async (): Promise<Buffer> => {
    const create = { width: 1, height: 1, channels: 4, background: '#fff' } as const;
    const png = await sharp({ create }).withIccProfile('p3').png().toBuffer();
    const at = png.indexOf('iCCP');
    return png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4));
  };

  test.each([
    ['gAMA of 1', 'gAMA', async () => u32be(100_000)],
    ['gAMA of 1 / 1.8', 'gAMA', async () => u32be(55_556)],
    ['a profile of Display P3', 'iCCP', profiled],
  ])('%s, does so in the frames as in a still', async (_, type, read) => {
    const size = { widthPx: 30, heightPx: 30 };
    const before = [{ type, data: await read() }];
    for (const [bits, draw] of [
      [8, fade],
      [16, deep],
    ] as const) {
      const kind = { colour: 'rgba', bits } as const;
      const film = drawApng({ ...size, kind, before, frames: [{ draw }, { draw }] });
      const still = await decodeImage(
        (await ask(film, '/attachments/1/{id}/x?format=png')).rawPayload,
      );
      const plain = drawApng({ ...size, kind, frames: [{ draw }] });
      const unlike = await decodeImage(
        (await ask(plain, '/attachments/1/{id}/x?format=png')).rawPayload,
      );
      if (bits === 8) expect(still.frames[0]).not.toEqual(unlike.frames[0]);
      const { frames } = await decodeImage((await ask(film, ANIMATED)).rawPayload);
      expect(frames).toHaveLength(2);
      for (const frame of frames) expect(frame).toEqual(still.frames[0]);
    }
  });
});

describe('an APNG', () => {
  const draw = (): number[] => [200, 30, 90, 255];
  const film: DrawnApng = {
    widthPx: 20,
    heightPx: 20,
    frames: [{ draw }, { draw: () => [0, 0, 0, 0], left: 4, top: 4, widthPx: 8, heightPx: 8 }],
  };
  const original = drawApng(film);

  test.each([
    ['a PNG as a still', '/avatars/1/{id}.png?size=20', 'png', 1],
    ['a WebP as a still', '/avatars/1/{id}.webp?size=20', 'webp', 1],
    ['a WebP that moves where it is asked for', '/emojis/{id}.webp?animated=true', 'webp', 2],
    ['a GIF that moves', '/emojis/{id}.gif', 'gif', 2],
    ['a sticker that moves', '/stickers/{id}.webp', 'webp', 2],
    ['a sticker as a still', '/stickers/{id}.webp?animated=false', 'webp', 1],
    ['an attachment, a PNG unless it moves', '/attachments/1/{id}/x?width=10', 'png', 1],
    [
      'an attachment, a WebP if it moves',
      '/attachments/1/{id}/x?width=10&animated=true',
      'webp',
      2,
    ],
    ['an attachment as a GIF that stands', '/attachments/1/{id}/x?format=gif', 'gif', 1],
    ['a PNG, which cannot move', '/attachments/1/{id}/x?format=png&animated=true', 'png', 1],
    ['an attachment of its own size and format', '/attachments/1/{id}/x?format=png', 'png', 1],
  ])('is %s', async (_, path, format, frames) => {
    const { statusCode, rawPayload } = await ask(original, path);
    const { pages = 1, ...metadata } = await sharp(rawPayload).metadata();
    expect([statusCode, metadata.format, pages]).toEqual([200, format, frames]);
    expect(rawPayload.includes('acTL')).toBe(false);
  });

  test('is passed on as it is where nothing is asked of it', async () => {
    const { headers, rawPayload } = await ask(original, '/attachments/1/{id}/x');
    expect(headers['content-type']).toBe('image/apng');
    expect(rawPayload.equals(original)).toBe(true);
  });

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
    const animated = await ask(broken, '/stickers/{id}.webp');
    expect([animated.statusCode, animated.json().code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
    expect((await ask(broken, '/stickers/{id}.webp?animated=false')).statusCode).toBe(200);
    expect((await ask(broken, '/emojis/{id}.png')).statusCode).toBe(200);
  });

  test('has no more frames than are allowed, moving or not', async () => {
    const frames = Array.from({ length: 1_025 }, () => ({ draw, widthPx: 1, heightPx: 1 }));
    const long = drawApng({ ...film, still: draw, frames });
    for (const path of ['/stickers/{id}.webp', '/emojis/{id}.png']) {
      const refused = await ask(long, path);
      expect([refused.statusCode, refused.json().code]).toEqual([422, 'MEDIA_TOO_LARGE']);
    }
  });
});

function expectedImage(drawn: DrawnApng) {
  const frames = composeApng(drawn);
  const isAnimated = frames.length > 1;
  return {
    widthPx: drawn.widthPx,
    heightPx: drawn.heightPx,
    frames: frames.map(blankUnseen),
    delaysMs: isAnimated
      ? drawn.frames.map(({ delay: [part, of] = [1, 10] }) =>
          Math.round((part * 1000) / (of || 100)),
        )
      : undefined,
    plays: isAnimated ? (drawn.plays ?? 0) : undefined,
  };
}

/** libwebp keeps no colours below an alpha of 0 in an animation. */
function withoutUnseen(image: DecodedImage): DecodedImage {
  return { ...image, frames: image.frames.map(blankUnseen) };
}

function blankUnseen(frame: Uint8Array): Uint8Array {
  return frame.map((sample, at) => (frame[at - (at % 4) + 3] === 0 ? 0 : sample));
}
