import { MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import { type Clock, type Lane, lanes } from '../ports.ts';
import { type Holder, hasStarved, LaneState } from './lane-state.ts';
import { costlySlotsOf, pickCostly, type Running } from './slot-forecast.ts';

/** The processes that render, as far as slots are theirs. */
export interface SlotSource {
  /** How many slots each lane has. */
  readonly slots: Readonly<Record<Lane, number>>;
  /** Whether a process of the lane is there and has nothing to do. */
  readonly hasIdle: (lane: Lane) => boolean;
}

/** Bounds of the lanes (contract §6). */
export interface AdmissionLimits {
  /** How many may wait for each slot of their lane. */
  readonly maxWaitingPerSlot: number;
  /** How long one may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** A CPU slot, held by one render. */
export interface Slot {
  /** Whose processes render: of a borrowed slot not the lane that was asked for. */
  readonly lane: Lane;
  /**
   * Gives the slot back; to be called once.
   *
   * @param isMeasured whether the time it was held says how long such renders take: not if one was stopped
   * @returns that time, in milliseconds; of a borrowed slot at most what was estimated: it waits for all others
   */
  readonly leave: (isMeasured: boolean) => number;
}

/** Slots of the light lane that starving heavy renders may keep empty: it renders at half of its rate at least. */
const MAX_WITHHELD_SHARE = 1 / 2;

/**
 * How much of the longest wait may be foreseen for a render that is let into the queue: contents differ,
 * and what is refused must be refused at once, not after the wait. `QUEUE_TIMEOUT_MS` is documented so.
 */
const MAX_FORESEEN_SHARE = 1 / 2;

/** How long nothing is lent after a borrower has starved, in milliseconds. */
const LENDING_PAUSE_MS = 60_000;

/** Longest `Retry-After`, in seconds: nothing can be foreseen beyond it. */
const MAX_RETRY_AFTER_SECONDS = 60;

/**
 * CPU slots in two lanes, with a queue for each. Each lane has a slot for every core, and the system shares the
 * cores among their processes by niceness: light renders go first, and heavy ones have all that these leave. So a
 * crowd of animations delays no avatar, and no core is kept for one kind of render. That heavy renders never starve
 * beside a crowd of light ones, some light slots stay empty for as long as heavy renders take far too long. And that
 * a few costly originals do not take all heavy slots for their ten seconds, these have half of them.
 *
 * While the heavy lane is empty, a light render may borrow one of its slots: a core is idle for a tenth of the time
 * that its light process renders, whose threads wait for each other, and has that for the borrower.
 *
 * A render that could not begin in time is refused at once: its wait is foreseen from the costs ahead, and from how
 * long renders of the lane really take, beside whatever else the machine does.
 */
export class Admission {
  readonly #source: SlotSource;
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #meter: Pick<Meter, 'noteQueueWait'>;
  readonly #lanes: Readonly<Record<Lane, LaneState>>;
  /** By the clock; nothing is lent before. */
  #lendsFromMs = Number.NEGATIVE_INFINITY;

  constructor(
    source: SlotSource,
    limits: AdmissionLimits,
    clock: Clock,
    meter: Pick<Meter, 'noteQueueWait'>,
  ) {
    const { maxWaitingPerSlot, maxWaitMs } = limits;
    const createLane = (lane: Lane): LaneState =>
      new LaneState({ maxWaiting: maxWaitingPerSlot * source.slots[lane], maxWaitMs });
    this.#source = source;
    this.#limits = limits;
    this.#clock = clock;
    this.#meter = meter;
    this.#lanes = { light: createLane('light'), heavy: createLane('heavy') };
  }

  /**
   * Waits for a slot.
   *
   * @param costMs what the render is estimated to take of one core, in milliseconds
   * @throws MediaError `OVERLOADED` if the queue is full, or if the wait is, or would be, too long; or
   *   `signal.reason`
   */
  async enter(lane: Lane, costMs: number, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    const cameMs = this.#clock.nowMs();
    // A heavy process may have become idle since the last slot was left: it is for those that wait already.
    if (lane === 'light' && this.#canLend()) this.#admitWaiting(lane);
    const place = this.#findPlace(lane, costMs);
    const holder =
      place === undefined
        ? await this.#wait(lane, costMs, signal)
        : this.#begin(lane, place, costMs);
    this.#meter.noteQueueWait(lane, holder.sinceMs - cameMs);
    return { lane: holder.lane, leave: (isMeasured) => this.#leave(holder, isMeasured) };
  }

  /** How many renders wait in a lane. */
  waitingIn(lane: Lane): number {
    return this.#lanes[lane].queue.length;
  }

  /** How many slots of a lane are held. */
  heldSlotsOf(lane: Lane): number {
    return this.#lanes[lane].running.size;
  }

  /**
   * Whether no more renders can wait in a lane, or the wait would be too long.
   *
   * @param costMs as for `enter`; without it, of one that is not costly
   */
  isCrowded(lane: Lane, costMs = 0): boolean {
    if (this.#findPlace(lane, costMs) !== undefined) return false;
    return (
      this.#lanes[lane].queue.isFull || this.#foreseeWaitMs(lane, costMs) > this.#maxForeseenMs
    );
  }

  /** @throws MediaError `OVERLOADED` if a lane is crowded, as `enter` would */
  check(lane: Lane, costMs: number): void {
    if (this.isCrowded(lane, costMs)) {
      throw new MediaError('OVERLOADED', {
        bottleneck: `${lane} lane`,
        retryAfterSeconds: this.#retryAfterSeconds(lane, costMs),
      });
    }
  }

  get #maxForeseenMs(): number {
    return this.#limits.maxWaitMs * MAX_FORESEEN_SHARE;
  }

  /** Of which lane there is a slot for a render; `undefined` if it has to wait. */
  #findPlace(lane: Lane, costMs: number): Lane | undefined {
    if (this.#hasFree(lane, costMs)) return lane;
    return lane === 'light' && this.#canLend() ? 'heavy' : undefined;
  }

  /**
   * Whether the heavy lane has a slot for a light render. Lanes of a single slot lend none: a heavy render would wait
   * for the borrower, and no light slot could be kept empty for that one.
   */
  #canLend(): boolean {
    const { light, heavy } = this.#source.slots;
    if (light < 2 || heavy < 2 || this.#clock.nowMs() < this.#lendsFromMs) return false;
    return this.#lanes.heavy.isEmpty && this.#source.hasIdle('heavy');
  }

  /** A slot is free only while no render waits for it. */
  #hasFree(lane: Lane, costMs: number): boolean {
    const slots = this.#source.slots[lane];
    const withheld = lane === 'light' ? this.#countWithheld() : 0;
    const { running } = this.#lanes[lane];
    if (running.size >= slots - withheld) return false;
    return !this.#isCostly(costMs) || this.#runningCostly(lane).length < costlySlotsOf(slots);
  }

  #isCostly(costMs: number): boolean {
    return costMs > this.#maxForeseenMs;
  }

  /** Those that run and are costly, as was foreseen or as they have shown. */
  #runningCostly(lane: Lane): readonly Running[] {
    return pickCostly([...this.#lanes[lane].running], this.#clock.nowMs(), this.#maxForeseenMs);
  }

  /** How many light slots are to stay empty, so that heavy renders that starve get on. */
  #countWithheld(): number {
    const starving = this.#lanes.heavy.countStarving(this.#clock.nowMs());
    return Math.min(starving, Math.floor(this.#source.slots.light * MAX_WITHHELD_SHARE));
  }

  #begin(lane: Lane, place: Lane, costMs: number): Holder {
    const isBorrower = place !== lane;
    const holder = { lane: place, isBorrower, costMs, sinceMs: this.#clock.nowMs() };
    this.#lanes[place].running.add(holder);
    return holder;
  }

  #wait(lane: Lane, costMs: number, signal: AbortSignal): Promise<Holder> {
    this.check(lane, costMs);
    const retryAfterSeconds = (): number => this.#retryAfterSeconds(lane, costMs);
    const bottleneck = `${lane} lane` as const;
    const item = { costMs };
    return this.#lanes[lane].queue.join({ item, signal, bottleneck, retryAfterSeconds });
  }

  #retryAfterSeconds(lane: Lane, costMs: number): number {
    const seconds = Math.ceil(this.#foreseeWaitMs(lane, costMs) / 1000);
    return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
  }

  #leave(holder: Holder, isMeasured: boolean): number {
    const nowMs = this.#clock.nowMs();
    if (hasStarved(holder, nowMs)) this.#lendsFromMs = nowMs + LENDING_PAUSE_MS;
    const heldMs = this.#lanes[holder.lane].leave(holder, nowMs, isMeasured);
    // Of both: one that was withheld may be free again.
    for (const each of lanes) this.#admitWaiting(each);
    return heldMs;
  }

  /** Those that may have a slot, in their order: costly ones are overtaken while theirs are held. */
  #admitWaiting(lane: Lane): void {
    const { queue } = this.#lanes[lane];
    for (const next of queue.items()) {
      const place = this.#findPlace(lane, next.costMs);
      if (place === undefined) continue;
      queue.admitNext(this.#begin(lane, place, next.costMs), (item) => item === next);
    }
  }

  #foreseeWaitMs(lane: Lane, costMs: number): number {
    return this.#lanes[lane].foreseeWaitMs(costMs, {
      slots: this.#source.slots[lane],
      nowMs: this.#clock.nowMs(),
      costlyFromMs: this.#maxForeseenMs,
    });
  }
}
