import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { restoreGifTiming } from '../../../src/formats/gif/gif-timing.ts';

/** A GIF of small frames that all differ, as the worker's encoder leaves it. */
function encode(frames: number, loop: number): Promise<Buffer> {
  const pixels = Buffer.from(
    Array.from({ length: frames * 4 * 3 }, (_, index) => Math.floor(index / 12) * 9),
  );
  return sharp(pixels, { raw: { width: 2, height: 2 * frames, channels: 3, pageHeight: 2 } })
    .gif({ delay: Array(frames).fill(20), loop, keepDuplicateFrames: true })
    .toBuffer();
}

describe('the timing of a GIF', () => {
  test('has each delay as near as centiseconds allow, up to the longest there is', async () => {
    const delaysMs = [0, 4, 0, 10, 5, 15, 33, 27, 100_000, 655_350, 700_000];
    const gif = restoreGifTiming(await encode(delaysMs.length, 0), { delaysMs, plays: 0 });
    const { delay } = await sharp(gif, { animated: true }).metadata();
    expect(delay).toEqual([0, 0, 0, 10, 10, 10, 40, 20, 100_000, 655_350, 655_350]);
  });

  test.each([
    { plays: 0, loop: 0 },
    { plays: 1, loop: 1 },
    { plays: 2, loop: 0 },
    { plays: 3, loop: 0 },
    { plays: 65_535, loop: 0 },
    { plays: 65_536, loop: 0 }, // one more than sharp takes
  ])('plays $plays times', async ({ plays, loop }) => {
    const gif = restoreGifTiming(await encode(2, loop), { delaysMs: [20, 20], plays });
    expect((await sharp(gif, { animated: true }).metadata()).loop).toBe(plays);
  });

  test('is refused where the frames are not as many as the delays', async () => {
    const gif = await encode(2, 0);
    expect(() => restoreGifTiming(gif, { delaysMs: [20], plays: 0 })).toThrow('Expected 1 frames');
    expect(() => restoreGifTiming(gif, { delaysMs: [20, 20, 20], plays: 0 })).toThrow(
      'Expected 3 frames',
    );
  });

  test('is refused, as a fault of ours, where the encoder has left half a GIF', async () => {
    const gif = await encode(2, 0);
    const attempt = () => restoreGifTiming(gif.subarray(0, -4), { delaysMs: [20, 20], plays: 0 });
    expect(attempt).toThrow('Expected a GIF with a trailer but received truncated');
    expect(attempt).not.toThrow(MediaError); // which would blame the original
  });
});
