import { MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import type { Clock, Lane } from '../ports.ts';
import { WaitQueue } from '../wait-queue.ts';

/** Bounds of the lanes (contract §6). */
export interface AdmissionLimits {
  /** How many slots each lane has; a render may also borrow one of the other lane, as `Admission` says. */
  readonly slots: Readonly<Record<Lane, number>>;
  /** How many may wait for each slot of their lane. */
  readonly maxWaitingPerSlot: number;
  /** How long one may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** What a render asks a slot for. */
export interface Demand {
  /** What it is estimated to take of one core, in milliseconds. */
  readonly costMs: number;
  /** Whether a heavy one may borrow a light slot, if it is short: not where it has been too slow for one. */
  readonly mayBorrow: boolean;
}

/** A CPU slot, held by one render. */
export interface Slot {
  /** The lane that the slot belongs to. */
  readonly lane: Lane;
  /**
   * Gives the slot back; to be called once.
   *
   * @param isMeasured whether the time it was held says how long such renders take: not if one was stopped
   */
  readonly leave: (isMeasured: boolean) => void;
}

/** A render that has a slot. */
interface Running {
  /** The lane of the render, */
  readonly lane: Lane;
  /** and the one that its slot belongs to. */
  readonly slot: Lane;
  readonly costMs: number;
  readonly sinceMs: number;
}

/** How much one render changes the estimate: an eighth, as in TCP's smoothed round trip (RFC 6298). */
const LEARNING_RATE = 1 / 8;

/** A render that takes longer than this times its estimate has met a fault, which says nothing of the machine. */
const MAX_SLOWNESS = 8;

/**
 * How much of the longest wait may be foreseen for a render that is let into the queue: contents differ,
 * and what is refused must be refused at once, not after the wait. `QUEUE_TIMEOUT_MS` is documented so.
 */
const MAX_FORESEEN_SHARE = 1 / 2;

/**
 * Longest heavy render that may borrow a light slot, in milliseconds: little longer than light ones
 * themselves may take. With all slots instead of half of them, animated emojis are rendered at twice the rate.
 */
const MAX_BORROWER_MS = 150;

/** Longest `Retry-After`, in seconds: nothing can be foreseen beyond it. */
const MAX_RETRY_AFTER_SECONDS = 60;

/**
 * CPU slots in two lanes, with a queue for each. A light render takes a slot of either lane. A heavy one takes
 * one of its own lane or, if it is short, as an animated emoji is, borrows a light one that no light render
 * waits for. So a crowd of animations always leaves a part of the machine to light renders, and all of it is
 * used. A render that could not begin in time is refused at once: its wait is foreseen from the costs ahead.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #meter: Pick<Meter, 'noteQueueWait'> | undefined;
  /** What is granted is a slot of the named lane. */
  readonly #queues: Readonly<Record<Lane, WaitQueue<Demand, Lane>>>;
  readonly #free: Record<Lane, number>;
  readonly #running = new Set<Running>();
  /** How long renders of a lane hold their slot, in relation to their estimated cost. */
  readonly #slowness: Record<Lane, number> = { light: 1, heavy: 1 };

  constructor(limits: AdmissionLimits, clock: Clock, meter?: Pick<Meter, 'noteQueueWait'>) {
    const { slots, maxWaitingPerSlot, maxWaitMs } = limits;
    const createQueue = (lane: Lane): WaitQueue<Demand, Lane> =>
      new WaitQueue({ maxWaiting: maxWaitingPerSlot * slots[lane], maxWaitMs });
    this.#limits = limits;
    this.#clock = clock;
    this.#meter = meter;
    this.#queues = { light: createQueue('light'), heavy: createQueue('heavy') };
    this.#free = { ...slots };
  }

  /**
   * Waits for a slot.
   *
   * @throws MediaError `OVERLOADED` if the queue is full, or if the wait is, or would be, too long; or
   *   `signal.reason`
   */
  async enter(lane: Lane, demand: Demand, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    const cameMs = this.#clock.nowMs();
    const slot = this.#takeFree(lane, demand) ?? (await this.#wait(lane, demand, signal));
    const sinceMs = this.#clock.nowMs();
    this.#meter?.noteQueueWait(lane, sinceMs - cameMs);
    const running = { lane, slot, costMs: demand.costMs, sinceMs };
    this.#running.add(running);
    return { lane: slot, leave: (isMeasured) => this.#leave(running, isMeasured) };
  }

  /** How many renders wait in a lane. */
  waitingIn(lane: Lane): number {
    return this.#queues[lane].length;
  }

  /** How many slots of a lane are held, by renders of either. */
  heldSlotsOf(lane: Lane): number {
    return this.#limits.slots[lane] - this.#free[lane];
  }

  /** Whether no more renders can wait in a lane, or the wait would be too long. */
  isCrowded(lane: Lane): boolean {
    if (this.#free[lane] > 0) return false;
    return (
      this.#queues[lane].isFull ||
      this.#foreseeWaitMs(lane) > this.#limits.maxWaitMs * MAX_FORESEEN_SHARE
    );
  }

  /** @throws MediaError `OVERLOADED` if a lane is crowded, as `enter` would */
  check(lane: Lane, demand: Demand): void {
    if (this.#findFree(lane, demand) === undefined && this.isCrowded(lane)) {
      throw new MediaError('OVERLOADED', {
        bottleneck: `${lane} lane`,
        retryAfterSeconds: this.#retryAfterSeconds(lane),
      });
    }
  }

  /** A slot is free only while no render that it is fit for waits. */
  #takeFree(lane: Lane, demand: Demand): Lane | undefined {
    const slot = this.#findFree(lane, demand);
    if (slot !== undefined) this.#free[slot] -= 1;
    return slot;
  }

  #findFree(lane: Lane, demand: Demand): Lane | undefined {
    const other = lane === 'light' ? 'heavy' : 'light';
    const mayTakeOther = lane === 'light' || this.#mayBorrow(demand);
    const slot = this.#free[lane] === 0 && mayTakeOther ? other : lane;
    return this.#free[slot] === 0 ? undefined : slot;
  }

  /**
   * Whether a heavy render may borrow a light slot: if it keeps it about as long as a light one may. That
   * renders took less than their estimate lately says nothing of this one: flat pictures do.
   */
  #mayBorrow({ costMs, mayBorrow }: Demand): boolean {
    return mayBorrow && costMs * Math.max(1, this.#slowness.heavy) <= MAX_BORROWER_MS;
  }

  #wait(lane: Lane, demand: Demand, signal: AbortSignal): Promise<Lane> {
    this.check(lane, demand);
    const retryAfterSeconds = (): number => this.#retryAfterSeconds(lane);
    const bottleneck = `${lane} lane` as const;
    return this.#queues[lane].join({ item: demand, signal, bottleneck, retryAfterSeconds });
  }

  #retryAfterSeconds(lane: Lane): number {
    const seconds = Math.ceil(this.#foreseeWaitMs(lane) / 1000);
    return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
  }

  #leave(running: Running, isMeasured: boolean): void {
    this.#running.delete(running);
    if (isMeasured) {
      const { lane } = running;
      const slowness = (this.#clock.nowMs() - running.sinceMs) / running.costMs;
      this.#slowness[lane] +=
        (Math.min(slowness, MAX_SLOWNESS) - this.#slowness[lane]) * LEARNING_RATE;
    }
    if (!this.#admitNext(running.slot)) this.#free[running.slot] += 1;
    // By what has been measured, more of those that wait may borrow.
    while (this.#free.light > 0 && this.#lend()) this.#free.light -= 1;
  }

  /** Hands a slot on, to a render of its own lane first. */
  #admitNext(slot: Lane): boolean {
    const { light, heavy } = this.#queues;
    return slot === 'light'
      ? light.admitNext(slot) || this.#lend()
      : heavy.admitNext(slot) || light.admitNext(slot);
  }

  /** Lends a light slot to a heavy render; tells whether there was one. */
  #lend(): boolean {
    return this.#queues.heavy.admitNext('light', (demand) => this.#mayBorrow(demand));
  }

  /** How long it takes until there is a slot for one more, if those ahead take what they are estimated to. */
  #foreseeWaitMs(lane: Lane): number {
    const { slots } = this.#limits;
    // Then, all slots are for light renders as they become free.
    const hasAll = lane === 'light' && this.#queues.heavy.length === 0;
    const count = hasAll ? slots.light + slots.heavy : slots[lane];
    const nowMs = this.#clock.nowMs();
    const busyMs: number[] = [];
    for (const { lane: by, slot, costMs, sinceMs } of this.#running) {
      if (!hasAll && slot !== lane) continue;
      busyMs.push(Math.max(0, costMs * this.#slowness[by] - (nowMs - sinceMs)));
    }
    while (busyMs.length < count) busyMs.push(0);
    let aheadMs = 0;
    for (const { costMs } of this.#queues[lane].items()) aheadMs += costMs * this.#slowness[lane];
    return shareOut(aheadMs, busyMs);
  }
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
