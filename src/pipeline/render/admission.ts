import { MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import { type Clock, type Lane, lanes } from '../ports.ts';
import { WaitQueue } from '../wait-queue.ts';

/** Bounds of the lanes (contract §6). */
export interface AdmissionLimits {
  /** How many slots each lane has, as the processes that render tell. */
  readonly slots: () => Readonly<Record<Lane, number>>;
  /** How many may wait for each slot of their lane. */
  readonly maxWaitingPerSlot: number;
  /** How long one may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** A CPU slot, held by one render. */
export interface Slot {
  /**
   * Gives the slot back; to be called once.
   *
   * @param isMeasured whether the time it was held says how long such renders take: not if one was stopped
   */
  readonly leave: (isMeasured: boolean) => void;
}

/** A render that has a slot. */
interface Running {
  /** What it is estimated to take of one core, in milliseconds. */
  readonly costMs: number;
  readonly sinceMs: number;
}

/** A lane as it stands. */
interface LaneState {
  /** Of the estimated costs of those that wait, in milliseconds. */
  readonly queue: WaitQueue<number, void>;
  readonly running: Set<Running>;
  /** Slots that are held; by one that is just being admitted, too. */
  held: number;
  /** How long renders hold their slot, in relation to their estimated cost. */
  slowness: number;
}

/** How much one render changes the estimate: an eighth, as in TCP's smoothed round trip (RFC 6298). */
const LEARNING_RATE = 1 / 8;

/** A render that takes longer than this times its estimate has met a fault, which says nothing of the machine. */
const MAX_SLOWNESS = 8;

/**
 * A heavy render that has held its slot for this times its estimate is taken to starve: beside light ones on all
 * cores, the system gives it a twentieth of one (niceness 19 beside 5).
 */
const STARVING_SLOWNESS = 4;

/** Slots of the light lane that starving heavy renders may keep empty: it renders at half of its rate at least. */
const MAX_WITHHELD_SHARE = 1 / 2;

/** What has taken longer than was foreseen is taken to go on for so much of that again. */
const OVERDUE_SHARE = 1 / 2;

/**
 * How much of the longest wait may be foreseen for a render that is let into the queue: contents differ,
 * and what is refused must be refused at once, not after the wait. `QUEUE_TIMEOUT_MS` is documented so.
 */
const MAX_FORESEEN_SHARE = 1 / 2;

/** Longest `Retry-After`, in seconds: nothing can be foreseen beyond it. */
const MAX_RETRY_AFTER_SECONDS = 60;

/**
 * CPU slots in two lanes, with a queue for each. Each lane has a slot for every core, and the system shares the
 * cores among their processes by niceness: light renders go first, and heavy ones have all that these leave. So a
 * crowd of animations delays no avatar, and no core is idle while a render waits. That heavy renders never starve
 * beside a crowd of light ones, some light slots stay empty for as long as heavy renders take far too long.
 *
 * A render that could not begin in time is refused at once: its wait is foreseen from the costs ahead, and from how
 * long renders of the lane really take, beside whatever else the machine does.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #meter: Pick<Meter, 'noteQueueWait'> | undefined;
  readonly #lanes: Readonly<Record<Lane, LaneState>>;

  constructor(limits: AdmissionLimits, clock: Clock, meter?: Pick<Meter, 'noteQueueWait'>) {
    const { slots, maxWaitingPerSlot, maxWaitMs } = limits;
    const createLane = (lane: Lane): LaneState => ({
      queue: new WaitQueue({ maxWaiting: maxWaitingPerSlot * slots()[lane], maxWaitMs }),
      running: new Set(),
      held: 0,
      slowness: 1,
    });
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
    if (this.#hasFree(lane)) this.#lanes[lane].held += 1;
    else await this.#wait(lane, costMs, signal);
    const sinceMs = this.#clock.nowMs();
    this.#meter?.noteQueueWait(lane, sinceMs - cameMs);
    const running = { costMs, sinceMs };
    this.#lanes[lane].running.add(running);
    return { leave: (isMeasured) => this.#leave(lane, running, isMeasured) };
  }

  /** How many renders wait in a lane. */
  waitingIn(lane: Lane): number {
    return this.#lanes[lane].queue.length;
  }

  /** How many slots of a lane are held. */
  heldSlotsOf(lane: Lane): number {
    return this.#lanes[lane].held;
  }

  /** Whether no more renders can wait in a lane, or the wait would be too long. */
  isCrowded(lane: Lane): boolean {
    if (this.#hasFree(lane)) return false;
    return (
      this.#lanes[lane].queue.isFull ||
      this.#foreseeWaitMs(lane) > this.#limits.maxWaitMs * MAX_FORESEEN_SHARE
    );
  }

  /** @throws MediaError `OVERLOADED` if a lane is crowded, as `enter` would */
  check(lane: Lane): void {
    if (this.isCrowded(lane)) {
      throw new MediaError('OVERLOADED', {
        bottleneck: `${lane} lane`,
        retryAfterSeconds: this.#retryAfterSeconds(lane),
      });
    }
  }

  /** A slot is free only while no render waits for it. */
  #hasFree(lane: Lane): boolean {
    const withheld = lane === 'light' ? this.#countWithheld() : 0;
    return this.#lanes[lane].held < this.#limits.slots()[lane] - withheld;
  }

  /** How many light slots are to stay empty, so that heavy renders that starve get on. */
  #countWithheld(): number {
    const nowMs = this.#clock.nowMs();
    let starving = 0;
    for (const { costMs, sinceMs } of this.#lanes.heavy.running) {
      if (nowMs - sinceMs > costMs * STARVING_SLOWNESS) starving += 1;
    }
    return Math.min(starving, Math.floor(this.#limits.slots().light * MAX_WITHHELD_SHARE));
  }

  #wait(lane: Lane, costMs: number, signal: AbortSignal): Promise<void> {
    this.check(lane);
    const retryAfterSeconds = (): number => this.#retryAfterSeconds(lane);
    const bottleneck = `${lane} lane` as const;
    return this.#lanes[lane].queue.join({ item: costMs, signal, bottleneck, retryAfterSeconds });
  }

  #retryAfterSeconds(lane: Lane): number {
    const seconds = Math.ceil(this.#foreseeWaitMs(lane) / 1000);
    return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
  }

  #leave(lane: Lane, running: Running, isMeasured: boolean): void {
    const state = this.#lanes[lane];
    state.running.delete(running);
    if (isMeasured) {
      const slowness = (this.#clock.nowMs() - running.sinceMs) / running.costMs;
      state.slowness += (Math.min(slowness, MAX_SLOWNESS) - state.slowness) * LEARNING_RATE;
    }
    state.held -= 1;
    // Of both: one that was withheld may be free again.
    for (const each of lanes) this.#admitWaiting(each);
  }

  #admitWaiting(lane: Lane): void {
    const state = this.#lanes[lane];
    while (this.#hasFree(lane) && state.queue.admitNext(undefined)) state.held += 1;
  }

  /** How long it takes until there is a slot for one more, if those ahead take what is foreseen of them. */
  #foreseeWaitMs(lane: Lane): number {
    const { queue, running } = this.#lanes[lane];
    const nowMs = this.#clock.nowMs();
    const slowness = this.#slownessOf(lane, nowMs);
    const busyMs = Array.from(running, ({ costMs, sinceMs }) => {
      const elapsedMs = nowMs - sinceMs;
      const leftMs = costMs * slowness - elapsedMs;
      return leftMs > 0 ? leftMs : elapsedMs * OVERDUE_SHARE;
    });
    while (busyMs.length < this.#limits.slots()[lane]) busyMs.push(0);
    const aheadMs = queue.items().reduce((sumMs, costMs) => sumMs + costMs * slowness, 0);
    return shareOut(aheadMs, busyMs);
  }

  /** As learned from renders that have ended; or as those that run show already, where that is more. */
  #slownessOf(lane: Lane, nowMs: number): number {
    const { running, slowness } = this.#lanes[lane];
    let [sumMs, elapsedMs] = [0, 0];
    for (const { costMs, sinceMs } of running) {
      sumMs += costMs;
      elapsedMs += Math.min(nowMs - sinceMs, costMs * MAX_SLOWNESS);
    }
    return sumMs === 0 ? slowness : Math.max(slowness, elapsedMs / sumMs);
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
