import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findUnusedIndex, repairGif } from '../../../src/formats/gif/gif-frames.ts';
import {
  compressIndices,
  control,
  type DrawnFrame,
  drawGif,
} from '../../support/images/draw-gif.ts';

/** Disposals as they stand in the packed field, without and with the transparency flag. */
const CLEAR = 2 << 2;
const FLAG = 1;

const screen = { widthPx: 2, heightPx: 1, indexBits: 1 } as const;
const pixel: DrawnFrame = { widthPx: 1, pixels: [1] };
const whole: DrawnFrame = { widthPx: 2, pixels: [0, 1] };
const withControls = (frame: DrawnFrame, ...controls: DrawnFrame['controls'] & {}) => ({
  ...frame,
  controls,
});
const disposed = withControls(whole, control(CLEAR));

/** Indices out of `colours`, in an order that repeats itself enough to be packed. */
function drawPixels(seed: number, count: number, colours: readonly number[]): number[] {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const among = state & 0x1000_0000 ? colours.length : Math.min(4, colours.length);
    return colours[(state >>> 16) % among] ?? 0;
  });
}

// What browsers show of the corpus' GIFs, and the service too, is told by the goldens animation/unpainted-*
// and animation/opaque-*.
describe('a GIF is not repaired', () => {
  test.each([
    ['where the first frame fills the canvas', [whole, pixel]],
    ['where the next frame covers what was disposed', [disposed, disposed, whole]],
    ['where the disposed frame is the last', [whole, disposed]],
    ['where a frame has the flag already', [withControls(pixel, control(FLAG)), pixel]],
    [
      'where libnsgif takes the flag from an earlier extension of the frame',
      [withControls(pixel, control(FLAG), control(CLEAR, 20, 1)), { ...pixel, pixels: [0] }],
    ],
    ['where there is no frame', []],
  ])('%s', (_, frames) => {
    const gif = drawGif({ ...screen, frames });
    expect(repairGif(gif, { widthPx: 2, heightPx: 1 })).toBe(gif);
  });
});

describe('the unused index of a frame of a GIF', () => {
  const every = [...Array(256).keys()];

  test('is one that no pixel has, if there is one', () => {
    const colours = fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 256 });
    fc.assert(
      fc.property(fc.nat(), fc.nat(30_000), colours, fc.boolean(), (seed, count, some, clears) => {
        const pixels = drawPixels(seed, count + 1, some);
        const used = new Set(pixels);
        const index = findUnusedIndex(compressIndices(pixels, 8, { clears }), 0);
        expect(index).toBe(every.find((other) => !used.has(other)));
      }),
      {
        examples: [
          [1, 60_000, every, true],
          [1, 60_000, every, false],
        ],
      },
    );
  });

  test.each([2, 4, 7])('is the largest possible where a root code has %i bits', (rootBits) => {
    expect(findUnusedIndex(compressIndices([0, 1, 2, 3], rootBits), 0)).toBe(255);
  });
});
