import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { writeGif } from '../../../src/formats/gif/gif-writer.ts';
import type { Animation } from '../../../src/formats/image-facts.ts';
import { readGifImages } from '../../support/images/read-gif.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';

const palette = Uint8Array.of(0, 0, 0, 255, 255, 255);

function write(animation: Animation | undefined, frames = animation?.delaysMs.length ?? 1): Buffer {
  return writeGif(
    { size: { widthPx: 2, heightPx: 2 }, palette, transparentIndex: undefined, animation },
    Array.from({ length: frames }, (_, frame) => ({
      area: { left: 0, top: 0, width: 2, height: 2 },
      indices: Uint8Array.of(frame % 2, 1, 0, 1),
      isCleared: false,
    })),
  );
}

describe('the timing of a GIF', () => {
  test('has each delay as near as centiseconds allow, up to the longest there is', async () => {
    const delaysMs = [0, 4, 0, 10, 5, 15, 33, 27, 100_000, 655_350, 700_000];
    const { delay } = await sharp(write({ delaysMs, plays: 0 }), { animated: true }).metadata();
    expect(delay).toEqual([0, 0, 0, 10, 10, 10, 40, 20, 100_000, 655_350, 655_350]);
  });

  test.each([0, 1, 2, 3, 65_535, 65_536])('plays %s times', async (plays) => {
    const gif = write({ delaysMs: [20, 20], plays });
    expect((await sharp(gif, { animated: true }).metadata()).loop).toBe(plays);
  });

  test('is none where there is nothing to time', () => {
    expect(write(undefined).includes('NETSCAPE')).toBe(false);
    expect(write(undefined)).toHaveLength(13 + 6 + 10 + 1 + 4 + 1);
  });
});

test.each([2, 3, 5, 8])('indices of %s bits are what they were', (rootBits) => {
  for (const length of [1, 2, 254, 5000, 70_000]) {
    const random = createSeededRandom(`indices:${rootBits}:${length}`);
    const isNoise = length !== 5000;
    const indices = Uint8Array.from({ length }, (_, at) =>
      isNoise ? random.integer(2 ** rootBits) : Math.floor(at / 300) % 2 ** rootBits,
    );
    const gif = writeGif(
      {
        size: { widthPx: length, heightPx: 1 },
        palette: new Uint8Array(3 * 2 ** rootBits),
        transparentIndex: undefined,
        animation: undefined,
      },
      [{ area: { left: 0, top: 0, width: length, height: 1 }, indices, isCleared: false }],
    );
    expect(readGifImages(gif).map((image) => Uint8Array.from(image.indices))).toEqual([indices]);
  }
});
