import { expect, test } from 'vitest';
import { hasManyColours } from '../../../src/workers/child/webp/few-colours.ts';

test('counts many colours in a frame of at most a megapixel, to limit memory', () => {
  const [widthPx, heightPx] = [1024, 1025];
  const data = Buffer.alloc(widthPx * heightPx * 3);
  // Another colour for each pixel.
  for (let at = 0; at < data.length; at += 3) data.writeUIntBE((at / 3) & 0xffffff, at, 3);
  const isOfMany = (height: number): boolean => {
    const frame = { data: data.subarray(0, widthPx * height * 3), widthPx, channels: 3 } as const;
    return hasManyColours({ ...frame, heightPx: height }, { widthPx, heightPx: height });
  };
  expect([isOfMany(1024), isOfMany(1025)]).toEqual([true, false]);
});
