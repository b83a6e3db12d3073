import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { scaleFrames } from '../../src/workers/child/frame-scaling.ts';

/** Frames of noise: all are different, especially their edges. */
function drawNoise(lengthBytes: number, channels: number): Buffer {
  const noise = createHash('shake256', { outputLength: lengthBytes }).update('noise').digest();
  if (channels === 4) {
    for (let at = 3; at < lengthBytes; at += 4) {
      // As in real pictures, most alpha is opaque or transparent.
      const alpha = noise.readUInt8(at);
      if (alpha < 60) noise.writeUInt8(0, at);
      else if (alpha < 150) noise.writeUInt8(255, at);
    }
  }
  return noise;
}

describe.each([3, 4] as const)('frames of %i channels', (channels) => {
  test.each([
    { from: [128, 128], to: [64, 64], count: 5 },
    { from: [96, 96], to: [20, 20], count: 7 },
    { from: [100, 37], to: [63, 23], count: 4 },
    { from: [33, 77], to: [33, 20], count: 3 },
    { from: [77, 33], to: [20, 33], count: 3 },
    { from: [64, 1], to: [32, 1], count: 3 },
    { from: [5, 3], to: [4, 1], count: 9 },
    { from: [127, 32], to: [64, 32], count: 3 }, // halfway, but exact
    { from: [300, 200], to: [200, 133], count: 40 }, // of 9.6 MB: in three groups
  ] as const)(
    '$count scaled from $from to $to equal those that libvips scales one by one, bit by bit',
    async ({ from: [widthPx, heightPx], to: [width, height], count }) => {
      const size = { widthPx: width, heightPx: height };
      const frameBytes = widthPx * heightPx * channels;
      const data = drawNoise(frameBytes * count, channels);
      const scaled = await scaleFrames(
        { data, widthPx, heightPx: heightPx * count, channels },
        { widthPx, heightPx },
        size,
      );
      const raw = { width: widthPx, height: heightPx, channels };
      const alone = Array.from({ length: count }, (_, at) => {
        const frame = sharp(data.subarray(at * frameBytes, (at + 1) * frameBytes), { raw });
        return frame.resize({ width, height, fit: 'fill' }).raw().toBuffer();
      });
      expect(Buffer.concat(await Promise.all(alone)).equals(scaled)).toBe(true);
    },
  );
});

test.each([
  [211, 192],
  [451, 320],
  [643, 160],
])(
  'frames scaled from %i to %i px, with pixels halfway, differ from libvips by at most a 64th of the range',
  async (from, to) => {
    const [widthPx, heightPx] = [from, 32];
    const data = drawNoise(widthPx * heightPx * 3, 3);
    const size = { widthPx: to, heightPx };
    const scaled = await scaleFrames(
      { data, widthPx, heightPx, channels: 3 },
      { widthPx, heightPx },
      size,
    );
    const raw = { width: widthPx, height: heightPx, channels: 3 } as const;
    const alone = await sharp(data, { raw })
      .resize({ width: to, height: heightPx, fit: 'fill' })
      .raw()
      .toBuffer();
    const differences = scaled.map((sample, at) => Math.abs(sample - (alone[at] ?? 0)));
    expect(Math.max(...differences)).toBeLessThanOrEqual(256 / 64);
  },
);
