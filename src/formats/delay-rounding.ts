/** Far below any delay: a sum of fractions that ought to end on a half must not fall short of it. */
const FRACTION_ERROR = 1e-6;

/**
 * Rounds delays to whole units of a container, each to its nearest; what that adds or takes away is carried
 * on to the next, so that the frames stay in time (contract §3).
 *
 * @param delaysMs in milliseconds, perhaps fractions
 * @param unitMs of the container
 * @param maxUnits longest delay that it holds; what is cut off there is not carried on
 */
export function roundDelays(
  delaysMs: readonly number[],
  unitMs: number,
  maxUnits: number,
): number[] {
  let carried = 0;
  return delaysMs.map((delayMs) => {
    const exact = delayMs / unitMs + carried;
    const rounded = Math.round(exact + FRACTION_ERROR);
    carried = exact - rounded;
    return Math.min(Math.max(rounded, 0), maxUnits);
  });
}
