/**
 * A quantile of measured values, by the nearest rank: a value that was measured, never one between.
 *
 * @param share 0.5 for the median, 0.99 for the 99th percentile
 * @returns `undefined` where nothing was measured
 */
export function quantile(values: ArrayLike<number>, share: number): number | undefined {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
