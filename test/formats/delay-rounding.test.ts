import fc from 'fast-check';
import { expect, test } from 'vitest';
import { roundDelays } from '../../src/formats/image-facts.ts';

test.each([
  ['a half goes up, and is taken off the next', [15, 15, 15, 15], 10, [2, 1, 2, 1]],
  ['thirds come back to whole ones', [100 / 3, 100 / 3, 100 / 3], 10, [3, 4, 3]],
  ['what is cut off is lost', [1_000, 5, 5], 10, [50, 1, 0]],
] as const)('delays of frames in the units of a format: %s', (_, delaysMs, unitMs, expected) => {
  expect(roundDelays(delaysMs, unitMs, 50 * (expected[0] === 50 ? 1 : 10))).toEqual(expected);
});

test('rounding shows no frame more than half a unit early or late', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(65_535), fc.integer({ min: 1, max: 65_535 })), { maxLength: 200 }),
      fc.constantFrom(1, 10),
      (fractions, unitMs) => {
        const delaysMs = fractions.map(
          ([numerator, denominator]) => (numerator * 1_000) / denominator,
        );
        let exact = 0;
        let rounded = 0;
        for (const [at, units] of roundDelays(delaysMs, unitMs, Infinity).entries()) {
          exact += delaysMs[at] ?? 0;
          rounded += units * unitMs;
          expect(Math.abs(exact - rounded)).toBeLessThanOrEqual(unitMs / 2 + 1e-3);
          expect(Number.isInteger(units)).toBe(true);
        }
      },
    ),
  );
});
