import { describe, expect, test } from 'vitest';
import { createZipfRanks, Random } from '../../../bench/harness/random.ts';

/** Slope of the logarithms of counts over those of ranks, by least squares. */
function slopeOf(counts: readonly number[]): number {
  const points = counts.map((count, rank) => [Math.log(rank + 1), Math.log(count)] as const);
  const mean = (axis: 0 | 1): number =>
    points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

function draw(exponent: number, count: number, draws: number): number[] {
  const random = new Random(11);
  const ranks = createZipfRanks(exponent);
  const counts = Array<number>(count).fill(0);
  for (let index = 0; index < draws; index += 1) {
    const rank = ranks(count, random);
    counts[rank] = (counts[rank] ?? 0) + 1;
  }
  return counts;
}

describe('ranks by Zipf’s law', () => {
  test.each([0.64, 0.8, 1, 1.2])('the slope is the exponent: %f', (exponent) => {
    const counts = draw(exponent, 10_000, 300_000);
    expect(slopeOf(counts.slice(0, 50))).toBeCloseTo(-exponent, 1);
  });

  test('the shares are the exact ones, the first included', () => {
    const draws = 200_000;
    const weights = Array.from({ length: 5 }, (_, rank) => (rank + 1) ** -0.8);
    const sum = weights.reduce((all, weight) => all + weight, 0);
    for (const [rank, count] of draw(0.8, 5, draws).entries()) {
      expect(count / draws).toBeCloseTo((weights[rank] ?? 0) / sum, 2);
    }
  });

  test('of one there is one', () => {
    expect(draw(0.8, 1, 10)).toEqual([10]);
  });
});
