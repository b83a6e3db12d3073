/** When slots that are shared become free, by what is known of the work in them. */

/** A render that waits for a slot. */
export interface Waiting {
  /** What it is estimated to take of one core, in milliseconds. */
  readonly costMs: number;
}

/** A render that has a slot. */
export interface Running extends Waiting {
  readonly sinceMs: number;
}

/** All that the forecast of a lane is made from. */
export interface LaneView {
  readonly waiting: readonly Waiting[];
  readonly running: readonly Running[];
  readonly slots: number;
  /** How long renders hold their slot, in relation to their estimated cost, as learned from those that have ended. */
  readonly slowness: number;
  readonly nowMs: number;
  /** Renders that are estimated to take longer are costly, in milliseconds. */
  readonly costlyFromMs: number;
}

/** A render that takes longer than this times its estimate has met a fault, which says nothing of the machine. */
export const MAX_SLOWNESS = 8;

/** What has taken longer than was foreseen is taken to go on for so much of that again. */
const OVERDUE_SHARE = 1 / 2;

/**
 * Slots that costly renders may have: no request may wait behind one of those, since each takes longer than any wait
 * that may be foreseen. Originals made to take long are not short of supply.
 */
const MAX_COSTLY_SHARE = 1 / 2;

/** How long it takes until there is a slot for one more, if those ahead take what is foreseen of them, in milliseconds. */
export function foreseeWaitMs(lane: LaneView, costMs: number): number {
  const { waiting, running, slots, nowMs, costlyFromMs } = lane;
  const slowness = slownessOf(lane);
  const leftMsOf = ({ costMs, sinceMs }: Running): number => {
    const elapsedMs = nowMs - sinceMs;
    const leftMs = costMs * slowness - elapsedMs;
    return leftMs > 0 ? leftMs : elapsedMs * OVERDUE_SHARE;
  };
  const sumMs = (items: readonly Waiting[]): number =>
    items.reduce((sum, item) => sum + item.costMs * slowness, 0);
  const costly = waiting.filter((item) => item.costMs > costlyFromMs);
  const aheadMs = sumMs(waiting) - sumMs(costly);
  const waitMs = shareOut(aheadMs, fillUp(running.map(leftMsOf), slots));
  if (costMs <= costlyFromMs) return waitMs;
  const busyMs = pickCostly(running, nowMs, costlyFromMs).map(leftMsOf);
  return Math.max(waitMs, shareOut(sumMs(costly), fillUp(busyMs, costlySlotsOf(slots))));
}

/** Those that are costly, as was foreseen or as they have shown. */
export function pickCostly(
  running: readonly Running[],
  nowMs: number,
  costlyFromMs: number,
): readonly Running[] {
  return running.filter(({ costMs, sinceMs }) => Math.max(costMs, nowMs - sinceMs) > costlyFromMs);
}

/** How many of so many slots costly renders may have. */
export function costlySlotsOf(slots: number): number {
  return Math.max(1, Math.floor(slots * MAX_COSTLY_SHARE));
}

/** As learned from renders that have ended; or as those that run show already, where that is more. */
function slownessOf({ running, slowness, nowMs }: LaneView): number {
  let [sumMs, elapsedMs] = [0, 0];
  for (const { costMs, sinceMs } of running) {
    sumMs += costMs;
    elapsedMs += Math.min(nowMs - sinceMs, costMs * MAX_SLOWNESS);
  }
  return sumMs === 0 ? slowness : Math.max(slowness, elapsedMs / sumMs);
}

/**
 * How long each of so many slots stays busy.
 *
 * @param busyMs of those that are held; slots that are not in the list are free
 */
function fillUp(busyMs: readonly number[], slots: number): number[] {
  return [...busyMs, ...Array.from({ length: Math.max(0, slots - busyMs.length) }, () => 0)];
}

/**
 * When work is done that is shared among slots as each of them becomes free: a slot that stays busy for
 * longer takes no part in it.
 *
 * @param workMs in milliseconds of one slot
 * @param busyMs how long each slot is not free
 */
function shareOut(workMs: number, busyMs: readonly number[]): number {
  let doneMs = Infinity;
  let sumMs = workMs;
  for (const [index, slotMs] of busyMs.toSorted((one, other) => one - other).entries()) {
    if (slotMs >= doneMs) break;
    sumMs += slotMs;
    doneMs = sumMs / (index + 1);
  }
  return doneMs;
}
