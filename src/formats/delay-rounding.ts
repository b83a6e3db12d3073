/** Far below any delay: keeps a sum of fractions that should end on a half from falling short of it. */
const FRACTION_ERROR = 1e-6;

/**
 * Rounds each delay to the nearest whole unit of a container, and carries its rounding error over to the next, so that
 * the frames stay in time (contract §3).
 *
 * @param delaysMs in milliseconds, perhaps fractions
 * @param unitMs of the container
 * @param maxUnits longest delay that the container can hold; the excess of a longer delay is not carried over
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
