/** When slots that are shared become free, by what is known of the work in them. */

/**
 * How long each of so many slots stays busy.
 *
 * @param busyMs of those that are held; slots that are not in the list are free
 */
export function fillUp(busyMs: readonly number[], slots: number): number[] {
  return [...busyMs, ...Array.from({ length: Math.max(0, slots - busyMs.length) }, () => 0)];
}

/**
 * When work is done that is shared among slots as each of them becomes free: a slot that stays busy for
 * longer takes no part in it.
 *
 * @param workMs in milliseconds of one slot
 * @param busyMs how long each slot is not free
 */
export function shareOut(workMs: number, busyMs: readonly number[]): number {
  let doneMs = Infinity;
  let sumMs = workMs;
  for (const [index, slotMs] of busyMs.toSorted((one, other) => one - other).entries()) {
    if (slotMs >= doneMs) break;
    sumMs += slotMs;
    doneMs = sumMs / (index + 1);
  }
  return doneMs;
}
