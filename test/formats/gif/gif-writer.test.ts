import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { writeGif } from '../../../src/formats/gif/gif-writer.ts';
import type { Animation } from '../../../src/formats/image-facts.ts';
import { readGifImages } from '../../support/images/read-gif.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';

const paletteOf = (bits: number) => Uint8Array.from({ length: 3 * 2 ** bits }, (_, at) => 7 * at);

/** Writes frames of one size, of so many bits an index. */
function write(
  bits: number,
  widthPx: number,
  frames: readonly Uint8Array[],
  animation?: Animation,
) {
  const heightPx = (frames[0]?.length ?? 0) / widthPx;
  const area = { left: 0, top: 0, width: widthPx, height: heightPx };
  const palette = paletteOf(bits);
  return writeGif(
    { size: { widthPx, heightPx }, palette, transparentIndex: undefined, animation },
    frames.map((indices) => ({ area, indices, isCleared: false })),
  );
}

const dots = (animation: Animation) =>
  sharp(
    write(
      1,
      2,
      animation.delaysMs.map((_, at) => Uint8Array.of(at % 2, 1, 0, 1)),
      animation,
    ),
    {
      animated: true,
    },
  ).metadata();

describe('the timing of a written GIF', () => {
  test('has each delay to the nearest centisecond, up to the longest possible', async () => {
    const delaysMs = [0, 4, 0, 10, 5, 15, 33, 27, 100_000, 655_350, 700_000];
    const { delay } = await dots({ delaysMs, plays: 0 });
    expect(delay).toEqual([0, 0, 0, 10, 10, 10, 40, 20, 100_000, 655_350, 655_350]);
  });

  test.each([0, 1, 2, 3, 65_535, 65_536])('plays %s times', async (plays) => {
    expect((await dots({ delaysMs: [20, 20], plays })).loop).toBe(plays);
  });

  test('is left out of a still', () => {
    expect(write(1, 2, [Uint8Array.of(0, 1, 0, 1)])).toHaveLength(13 + 6 + 10 + 1 + 4 + 1);
  });
});

test.each([2, 3, 5, 8])('indices of %s bits survive LZW encoding and decoding', (bits) => {
  for (const length of [1, 2, 254, 5000, 70_000]) {
    const random = createSeededRandom(`indices:${bits}:${length}`);
    const isNoise = length !== 5000;
    const indices = Uint8Array.from({ length }, (_, at) =>
      isNoise ? random.integer(2 ** bits) : Math.floor(at / 300) % 2 ** bits,
    );
    const gif = write(bits, length % 1000 === 0 ? 1000 : length, [indices]);
    expect([...gif.subarray(13, 13 + 3 * 2 ** bits)]).toEqual([...paletteOf(bits)]);
    expect(readGifImages(gif).map((image) => image.indices)).toEqual([indices]);
  }
});
