import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { readFrames } from '../../../src/formats/gif/gif-frames.ts';
import { readGifHeader } from '../../../src/formats/gif/gif-header.ts';
import { decodeGif } from '../../../src/workers/child/gif/decode-gif.ts';
import { gifControl, gifImage, gifScreen, join } from '../../formats/containers.ts';
import { drawRandomGif } from '../../support/images/random-gif.ts';

/** Decodes frames to colours as 32-bit words, alpha highest, red lowest; 0 for unpainted pixels. */
async function decode(gif: Uint8Array, batchFrames = 1): Promise<number[][]> {
  const { widthPx, heightPx } = readGifHeader(gif);
  const frames: number[][] = [];
  for await (const batch of decodeGif(gif, { originalSize: { widthPx, heightPx } }, batchFrames)) {
    const { data, channels } = batch;
    const words = Array.from({ length: data.length / channels }, (_, pixel) => {
      const [red = 0, green = 0, blue = 0, alpha = 255] = data.subarray(
        pixel * channels,
        (pixel + 1) * channels,
      );
      return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    });
    for (let at = 0; at < words.length; at += widthPx * heightPx) {
      frames.push(words.slice(at, at + widthPx * heightPx));
    }
  }
  return frames;
}

// test/browser compares the model with Chromium.
test('composes the frames of a GIF as browsers do, for all areas, disposals and row orders', async () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const { gif, frames } = drawRandomGif(`frames:${seed}`);
    expect(await decode(gif), `seed ${seed}`).toEqual(frames);
    expect(await decode(gif, 3), `seed ${seed}`).toEqual(frames);
  }
});

test.each([
  ['screen-640x480.gif', 640 * 480, [10_000, 10_000, 10_000]],
  ['screen-800x600-still.gif', 800 * 600, [30_000]],
  ['dispose3-opaque-first.gif', 64 * 48, [3072, 600, 600, 48]],
  ['dispose4-opaque-first.gif', 64 * 48, [3072, 600, 600, 48]],
  ['dispose2-256-colours.gif', 64 * 48, [3072, 256]],
])('%s has the size and opaque pixels that Chromium shows', async (file, pixels, opaque) => {
  const frames = await decode(readFileSync(`fixtures/gif/${file}`));
  expect(frames.map((frame) => frame.length)).toEqual(opaque.map(() => pixels));
  expect(frames.map((frame) => frame.filter((word) => word > 0).length)).toEqual(opaque);
});

test('a frame whose data ends early keeps the pixels below', async () => {
  const short = gifImage(0, 0, 2, 1); // data of one pixel
  const [first = [], second = []] = await decode(
    join(gifScreen(2, 1), gifControl(1), short, gifControl(1), short, 0x3b),
  );
  expect(second).toEqual(first);
});

test('an opaque GIF whose frames leave unchanged pixels transparent has no alpha', async () => {
  const [widthPx, heightPx] = [8, 6];
  const frames = [1, 2, 3].flatMap((frame) =>
    Array.from({ length: widthPx * heightPx * 3 }, (_, at) => (at < 12 ? frame * 70 : 200)),
  );
  const raw = { width: widthPx, height: heightPx * 3, channels: 3, pageHeight: heightPx } as const;
  const gif = await sharp(Buffer.from(frames), { raw }).gif().toBuffer();
  expect(readFrames(gif).some(({ isTransparent }) => isTransparent)).toBe(true);
  const { value } = await decodeGif(gif, { originalSize: { widthPx, heightPx } }, 3).next();
  expect(value?.channels).toBe(3);
});

test('only a GIF with transparent pixels has alpha', async () => {
  const image = gifImage(0, 0, 4, 3);
  const channelsOf = async (...blocks: Buffer[]) => {
    const gif = join(gifScreen(4, 3), ...blocks, 0x3b);
    const { value } = await decodeGif(gif, { originalSize: { widthPx: 4, heightPx: 3 } }, 1).next();
    return value?.channels;
  };
  const disposed = join(0x21, 0xf9, 4, 2 << 2, 1, 0, 0, 0);
  expect(await channelsOf(image)).toBe(3);
  expect(await channelsOf(disposed, image, image)).toBe(3);
  expect(await channelsOf(disposed, image, gifImage(0, 0, 1, 1))).toBe(4);
  expect(await channelsOf(gifImage(1, 0, 3, 3))).toBe(4);
  expect(await channelsOf(join(0x21, 0xf9, 4, 1, 1, 0, 0, 0), image)).toBe(4);
});
