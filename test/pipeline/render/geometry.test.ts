import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Size } from '../../../src/formats/image-facts.ts';
import { fitBox, fitProportionally } from '../../../src/pipeline/render/geometry.ts';

const size = (widthPx: number, heightPx: number): Size => ({ widthPx, heightPx });
const edge = fc.integer({ min: 1, max: 70_000 });
const NO_LIMIT = 2 ** 31 - 1;

describe('a proportional size', () => {
  test.each([
    { original: size(800, 600), width: 128, expected: size(128, 96) },
    { original: size(600, 800), width: 128, expected: size(128, 171) },
    { original: size(100, 50), width: 128, expected: size(100, 50) },
    { original: size(1000, 1), width: 16, expected: size(16, 1) },
    { original: size(1, 1000), width: 16, expected: size(1, 1000) },
    { original: size(3, 2), width: 2, expected: size(2, 1) },
    { original: size(2000, 1001), width: 20, expected: size(20, 10) },
  ])('of $original at width $width', ({ original, width, expected }) => {
    expect(fitProportionally(original, { widthPx: width, heightPx: undefined }, NO_LIMIT)).toEqual(
      expected,
    );
  });

  test('by height alone, by nothing at all', () => {
    const original = size(800, 600);
    const fitted = (widthPx: number | undefined, heightPx: number | undefined) =>
      fitProportionally(original, { widthPx, heightPx }, NO_LIMIT);
    expect(fitted(undefined, 300)).toEqual(size(400, 300));
    expect(fitted(undefined, 4096)).toEqual(original);
    expect(fitted(undefined, undefined)).toEqual(original);
  });

  test.each([
    { original: size(10, 60_000), expected: size(3, 16_383) },
    { original: size(60_000, 10), expected: size(16_383, 3) },
    { original: size(20_000, 30_000), expected: size(10_922, 16_383) },
    { original: size(30_000, 20_000), expected: size(16_383, 10_922) },
    { original: size(20_000, 20_000), expected: size(16_383, 16_383) },
  ])('of $original is scaled down further where webp cannot hold it', ({ original, expected }) => {
    const bounds = { widthPx: undefined, heightPx: undefined };
    expect(fitProportionally(original, bounds, 16_383)).toEqual(expected);
  });

  test('never grows, never vanishes, never exceeds the format, keeps the ratio', () => {
    fc.assert(
      fc.property(edge, edge, fc.option(edge, { nil: undefined }), edge, (w, h, width, limit) => {
        const fitted = fitProportionally(
          size(w, h),
          { widthPx: width, heightPx: undefined },
          limit,
        );
        expect(fitted.widthPx).toBeGreaterThanOrEqual(1);
        expect(fitted.heightPx).toBeGreaterThanOrEqual(1);
        expect(fitted.widthPx).toBeLessThanOrEqual(Math.min(w, width ?? w, limit));
        expect(fitted.heightPx).toBeLessThanOrEqual(Math.min(h, limit));
        // One edge is given, the other is its proportion, rounded.
        const proportion = (length: number) => Math.max(1, Math.round(length));
        expect([fitted.heightPx, fitted.widthPx]).toContain(
          fitted.heightPx === proportion((h * fitted.widthPx) / w)
            ? fitted.heightPx
            : proportion((w * fitted.heightPx) / h),
        );
      }),
    );
  });
});

describe('a box', () => {
  test.each([
    { original: size(800, 600), box: size(400, 300), expected: size(400, 300) },
    { original: size(800, 600), box: size(300, 300), expected: size(300, 300) },
    { original: size(800, 600), box: size(1600, 1600), expected: size(600, 600) },
    { original: size(800, 600), box: size(1600, 600), expected: size(800, 300) },
    { original: size(100, 50), box: size(4096, 1), expected: size(100, 1) },
    { original: size(403, 302), box: size(400, 400), expected: size(302, 302) },
    { original: size(1, 1), box: size(4096, 4096), expected: size(1, 1) },
  ])('$box in $original', ({ original, box, expected }) => {
    expect(fitBox(original, box)).toEqual(expected);
  });

  test('always fits, and is the box itself where that fits', () => {
    fc.assert(
      fc.property(edge, edge, edge, edge, (w, h, boxWidth, boxHeight) => {
        const fitted = fitBox(size(w, h), size(boxWidth, boxHeight));
        expect(fitted.widthPx).toBeLessThanOrEqual(w);
        expect(fitted.heightPx).toBeLessThanOrEqual(h);
        if (boxWidth <= w && boxHeight <= h) expect(fitted).toEqual(size(boxWidth, boxHeight));
      }),
    );
  });
});
