import type { Lane } from '../ports.ts';
import { WaitQueue, type WaitQueueLimits } from '../wait-queue.ts';
import {
  foreseeWaitMs,
  type LaneView,
  MAX_SLOWNESS,
  type Running,
  type Waiting,
} from './slot-forecast.ts';

/** One that holds a slot of a lane; a borrower has come to the other one. */
export interface Holder extends Running {
  /** Whose slot it is. */
  readonly lane: Lane;
  readonly isBorrower: boolean;
}

/** How much one render changes the estimate: an eighth, as in TCP's smoothed round trip (RFC 6298). */
const LEARNING_RATE = 1 / 8;

/**
 * A heavy render that has held its slot for this times its estimate is taken to starve: beside light ones on all
 * cores, the system gives it a twentieth of one (niceness 19 beside 5).
 */
const STARVING_SLOWNESS = 4;

/** A borrower that holds its slot for this times its estimate, and for this long in milliseconds, has starved. */
const STARVED_BORROWER = { slowness: 8, heldMs: 500 } as const;

/** Whether a borrower was kept from the cores for far too long: by other processes of the machine, as a rule. */
export function hasStarved({ isBorrower, costMs, sinceMs }: Holder, nowMs: number): boolean {
  const { slowness, heldMs } = STARVED_BORROWER;
  return isBorrower && nowMs - sinceMs > Math.max(costMs * slowness, heldMs);
}

/** A lane as it stands: what waits, what runs, and how long that takes. */
export class LaneState {
  readonly queue: WaitQueue<Waiting, Holder>;
  /** Those that hold a slot. */
  readonly running = new Set<Holder>();
  /** How long renders hold their slot, in relation to their estimated cost. */
  #slowness = 1;

  constructor(limits: WaitQueueLimits) {
    this.queue = new WaitQueue(limits);
  }

  /** Whether nothing runs, and nothing waits. */
  get isEmpty(): boolean {
    return this.running.size === 0 && this.queue.length === 0;
  }

  /** How many have held their slot for far too long. */
  countStarving(nowMs: number): number {
    const isStarving = ({ costMs, sinceMs }: Running): boolean =>
      nowMs - sinceMs > costMs * STARVING_SLOWNESS;
    return [...this.running].filter(isStarving).length;
  }

  /**
   * Takes a slot back.
   *
   * @param isMeasured whether the time it was held says how long such renders take
   * @returns that time, in milliseconds; of a borrower at most what was estimated: it waits for all others
   */
  leave(holder: Holder, nowMs: number, isMeasured: boolean): number {
    this.running.delete(holder);
    const heldMs = nowMs - holder.sinceMs;
    if (holder.isBorrower) return Math.min(heldMs, holder.costMs);
    if (isMeasured) {
      const slowness = Math.min(heldMs / holder.costMs, MAX_SLOWNESS);
      this.#slowness += (slowness - this.#slowness) * LEARNING_RATE;
    }
    return heldMs;
  }

  /** How long one more would wait, in milliseconds, as `foreseeWaitMs`. */
  foreseeWaitMs(
    costMs: number,
    circumstances: Pick<LaneView, 'slots' | 'nowMs' | 'costlyFromMs'>,
  ): number {
    const view = {
      waiting: this.queue.items(),
      // How long a borrower takes says nothing of the lane.
      running: [...this.running].filter(({ isBorrower }) => !isBorrower),
      slowness: this.#slowness,
      ...circumstances,
    };
    return foreseeWaitMs(view, costMs);
  }
}
