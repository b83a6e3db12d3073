/**
 * Measures three times and returns the median: one measurement of a busy machine is noise, and the best of several
 * would hide a fault that comes every other time.
 */
export async function medianOfThree(measure: () => Promise<number>): Promise<number> {
  const measured = [await measure(), await measure(), await measure()];
  return measured.sort((one, other) => one - other)[1] ?? Number.NaN;
}
