import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { encodeGif } from '../../../src/workers/child/gif/encode-gif.ts';
import { decodeImage } from '../../support/images/image-comparison.ts';
import { readGifImages } from '../../support/images/read-gif.ts';
import { createSeededRandom, type SeededRandom } from '../../support/seeded-random.ts';

const high = { colours: 256, dither: 0.75, maxFrameError: 2 };
const low = { colours: 16, dither: 0.75, maxFrameError: 8 };
const WHITE = [255, 255, 255, 255];
const BLACK = [0, 0, 0, 255];
const CLEAR = [0, 0, 0, 0];

type Pixel = readonly number[];

/** Small frames of some colours; each is equal to the previous one, or differs in a rectangle. */
function drawFrames(random: SeededRandom, colours: readonly Pixel[]) {
  const [widthPx, heightPx] = [1 + random.integer(24), 1 + random.integer(24)];
  let frame: Pixel[] = Array.from({ length: widthPx * heightPx }, () => random.pick(colours));
  const frames = Array.from({ length: 1 + random.integer(8) }, () => {
    frame = [...frame];
    const [left, top] = [random.integer(widthPx), random.integer(heightPx)];
    const [right, bottom] = [left + random.integer(widthPx), top + random.integer(heightPx)];
    const colour = random.pick(colours);
    const isNoise = random.integer(3) === 0;
    for (let y = top; y < Math.min(bottom, heightPx); y += 1) {
      for (let x = left; x < Math.min(right, widthPx); x += 1) {
        frame[y * widthPx + x] = isNoise ? random.pick(colours) : colour;
      }
    }
    return frame;
  });
  return { widthPx, frames };
}

function encode(
  frames: readonly (readonly Pixel[])[],
  widthPx: number,
  settings: typeof high,
  animation = { delaysMs: frames.map(() => 40), plays: 0 },
  channels: 1 | 2 | 3 | 4 = 4,
): Buffer {
  const heightPx = (frames[0]?.length ?? 0) / widthPx;
  return encodeGif(
    {
      data: Buffer.from(frames.flat(2)),
      ...{ widthPx, heightPx: heightPx * frames.length, channels },
    },
    { widthPx, heightPx },
    settings,
    frames.length > 1 ? animation : undefined,
  );
}

async function shownBy(gif: Buffer): Promise<number[][]> {
  return (await decodeImage(gif)).frames.map((frame) => [...frame]);
}

describe('a GIF of at most 256 colours', () => {
  test('shows each frame exactly, even if pixels appear or become transparent', async () => {
    for (let seed = 0; seed < 25; seed += 1) {
      const random = createSeededRandom(`gif:${seed}`);
      const opaque = Array.from({ length: 1 + random.integer(14) }, () => [
        ...random.bytes(3),
        255,
      ]);
      const colours = random.integer(2) === 0 ? opaque : [...opaque, CLEAR, CLEAR];
      const { widthPx, frames } = drawFrames(random, colours);
      const gif = encode(frames, widthPx, random.pick([high, low]));
      expect((await decodeImage(gif)).widthPx, `seed ${seed}`).toBe(widthPx);
      expect(await shownBy(gif), `seed ${seed}`).toEqual(frames.map((it) => it.flat()));
    }
  });

  test.each([1, 2, 3, 4, 15, 16, 17, 63, 64, 255, 256])(
    'has a colour table of all %s colours, and no others',
    async (count) => {
      const colours = Array.from({ length: count }, (_, index) => [index, 255 - index, 7, 255]);
      const frames = [colours, [...colours].reverse()];
      for (const shown of [frames, frames.slice(0, 1)]) {
        const gif = encode(shown, count, high);
        checkIndices(gif);
        // In an animation, one index marks unchanged pixels.
        if (count === 256 && shown.length > 1) continue;
        expect(await shownBy(gif)).toEqual(shown.map((it) => it.flat()));
      }
    },
  );
});

test('approximates the colours of a GIF that has too many', async () => {
  const ramp = Array.from({ length: 64 * 64 }, (_, at) => [
    ...[(at % 64) * 4, Math.floor(at / 64) * 4, 128, 255],
  ]);
  const [shown = []] = await shownBy(encode([ramp], 64, high));
  const sum = ramp
    .flat()
    .reduce((total, sample, at) => total + Math.abs(sample - (shown[at] ?? 0)), 0);
  expect(sum / (64 * 64 * 4)).toBeLessThan(6);
});

test('a GIF of low quality keeps transparency, white and black, and adds no transparency', async () => {
  const kept: readonly Pixel[] = [CLEAR, WHITE, BLACK];
  const near = [1, 4, 8, 247, 251, 254].map((level) => [level, level, level, 255]);
  for (let seed = 0; seed < 25; seed += 1) {
    const random = createSeededRandom(`low:${seed}`);
    const others = Array.from({ length: 20 }, () => [...random.bytes(3), 255]);
    const colours = [...kept, ...near, ...others];
    const { widthPx, frames } = drawFrames(random, colours);
    const gif = encode(frames, widthPx, low);
    checkIndices(gif);
    const shown = await shownBy(gif);
    const expected = frames.map((frame, index) =>
      frame.flatMap((pixel, at) => {
        const seen = shown[index]?.slice(4 * at, 4 * at + 4);
        return kept.includes(pixel) || seen?.[3] !== 255 ? pixel : seen;
      }),
    );
    expect(shown, `seed ${seed}`).toEqual(expected);
  }
});

test('does not encode unchanged pixels again', () => {
  const still = Array.from({ length: 100 }, (_, at) => [at, at, at, 255]);
  const [first, second, third] = readGifImages(
    encode([still, still, still.with(34, WHITE).with(56, BLACK)], 10, high),
  );
  expect(first).toMatchObject({ width: 10, height: 10 });
  expect(second).toMatchObject({ width: 1, height: 1 });
  expect(third).toMatchObject({ x: 4, y: 3, width: 3, height: 3 });
});

test('shows a pixel of half opacity', async () => {
  const alphas = [0, 127, 128, 255].map((alpha) => [10, 20, 30, alpha]);
  const [shown = []] = await shownBy(encode([alphas], 4, high));
  expect([3, 7, 11, 15].map((at) => shown[at])).toEqual([0, 0, 255, 255]);
});

test.each([1, 2, 3, 4] as const)('encodes samples of %s channels', async (channels) => {
  const pixels = Array.from({ length: 16 }, (_, at) => [at * 16, at * 16, at * 16, 255]);
  const samples = { 1: [0], 2: [0, 3], 3: [0, 1, 2], 4: [0, 1, 2, 3] }[channels];
  const given = pixels.map((pixel) => samples.map((at) => pixel[at] ?? 0));
  expect(await shownBy(encode([given], 4, high, undefined, channels))).toEqual([pixels.flat()]);
});

test('rounds delays to centiseconds up to the maximum, and keeps the plays', async () => {
  const delaysMs = [0, 4, 0, 10, 5, 15, 33, 27, 100_000, 655_350, 700_000];
  const frames = delaysMs.map((_, at) => [[at, 0, 0, 255] as const]);
  for (const plays of [0, 1, 2, 65_535, 65_536]) {
    const { delay, loop } = await sharp(encode(frames, 1, high, { delaysMs, plays })).metadata();
    expect(delay).toEqual([0, 0, 0, 10, 10, 10, 40, 20, 100_000, 655_350, 655_350]);
    expect(loop).toBe(plays);
  }
});

/** Every index is within its colour table, also the transparent one. */
function checkIndices(gif: Uint8Array): void {
  for (const { palette_size, indices, transparent_index } of readGifImages(gif)) {
    expect(Math.max(transparent_index ?? 0, ...indices)).toBeLessThan(palette_size);
  }
}
