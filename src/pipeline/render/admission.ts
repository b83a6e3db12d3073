import { MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import { type Clock, type Lane, lanes, type Renderer, type RenderSlot } from '../ports.ts';
import { Semaphore } from '../semaphore.ts';

/** Bounds of the lanes (contract §6). */
export interface AdmissionLimits {
  /** Maximum of waiting renders for each core, in each lane. */
  readonly maxWaitingPerCore: number;
  /** Cores that the workers share; the light lane has one slot more. */
  readonly cores: number;
  readonly maxWaitMs: number;
}

/** A slot that a render holds. */
export interface HeldSlot {
  readonly slot: RenderSlot;
  /**
   * Gives the slot back; to be called once.
   *
   * @param isMeasured whether the time it was held tells how long such renders take: not if one was stopped
   * @returns that time, in milliseconds
   */
  readonly leave: (isMeasured: boolean) => number;
}

/** A render that waits for a slot, or holds one. */
interface Entry {
  readonly costMs: number;
  /** `undefined`: it waits. */
  sinceMs?: number;
}

/** A queue, and what has passed it. */
interface Row {
  readonly slots: Semaphore;
  readonly slotCount: number;
  readonly entries: Set<Entry>;
  /** Time that renders hold their slot, in relation to their estimated cost. */
  slowness: number;
}

/**
 * Part of the longest wait that may be foreseen for a render that is let into the queue: contents differ, and what is
 * refused must be refused at once, not after the wait. `QUEUE_TIMEOUT_MS` is documented so.
 */
const MAX_FORESEEN_SHARE = 1 / 2;

/** Part of the heavy slots that renders may have which take longer than any wait that may be foreseen. */
const MAX_COSTLY_SHARE = 1 / 2;

/** Part that one render changes the estimate of slowness by, as in TCP's smoothed round trip (RFC 6298). */
const LEARNING_RATE = 1 / 8;

/**
 * Factor by which a render may exceed its estimate, and what others of its queue take in relation to theirs. One that
 * takes longer met an expensive original, which says nothing of the machine.
 */
const MAX_SLOWNESS = 8;

/** A render that takes longer than foreseen is taken to go on for so much of that again. */
const OVERDUE_SHARE = 1 / 2;

/** Longest `Retry-After`, in seconds: nothing can be foreseen beyond it. */
const MAX_RETRY_AFTER_SECONDS = 60;

/**
 * CPU slots in two lanes, with a queue for each. Each lane has a slot for every core, and the system shares the cores
 * among their processes by niceness: light renders go first, and heavy ones have all that these leave. So a crowd of
 * animations delays no avatar, and no core is kept for one kind of render. A few costly originals do not take all
 * heavy slots for their ten seconds: they wait in front of the lane for half of them.
 *
 * A render that could not begin in time is refused at once: its wait is foreseen from the costs ahead, and from how
 * long renders of the lane really take, beside whatever else the machine does.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #meter: Pick<Meter, 'time'>;
  readonly #renderer: Renderer;
  readonly #held = new Set<RenderSlot>();
  readonly #lanes: Readonly<Record<Lane, Row>>;
  readonly #costly: Row;

  constructor(
    renderer: Renderer,
    limits: AdmissionLimits,
    clock: Clock,
    meter: Pick<Meter, 'time'>,
  ) {
    const { maxWaitingPerCore, cores, maxWaitMs } = limits;
    const createRow = (slotCount: number): Row => ({
      slots: new Semaphore({
        slots: slotCount,
        maxWaiting: maxWaitingPerCore * Math.min(slotCount, cores),
        maxWaitMs,
      }),
      slotCount,
      entries: new Set(),
      slowness: 1,
    });
    this.#limits = limits;
    this.#clock = clock;
    this.#meter = meter;
    const { light, heavy } = renderer.slots;
    this.#renderer = renderer;
    this.#lanes = { light: createRow(light.length), heavy: createRow(heavy.length) };
    this.#costly = createRow(Math.max(1, Math.floor(heavy.length * MAX_COSTLY_SHARE)));
  }

  /**
   * Waits for a slot. Without heavy slots, all renders share the light ones.
   *
   * @param costMs what the render is estimated to take of one core, in milliseconds
   * @throws MediaError `OVERLOADED` if the queue is full, or if the wait is, or would be, too long; or `signal.reason`
   */
  async enter(kind: Lane, costMs: number, signal: AbortSignal): Promise<HeldSlot> {
    signal.throwIfAborted();
    const lane = this.#renderer.slots[kind].length === 0 ? 'light' : kind;
    const cameMs = this.#clock.nowMs();
    const rows = this.#rowsOf(lane, costMs);
    for (const row of rows) this.#check(row, lane);
    const leaves: HeldSlot['leave'][] = [];
    try {
      for (const row of rows) leaves.unshift(await this.#enter(row, lane, costMs, signal));
    } catch (error) {
      for (const leave of leaves) leave(false);
      throw error;
    }
    this.#meter.time('queueWait', lane, this.#clock.nowMs() - cameMs);
    const slot = this.#takeSlot(lane);
    return {
      slot,
      leave: (isMeasured) => {
        this.#held.delete(slot);
        return leaves.map((leave) => leave(isMeasured))[0] ?? 0;
      },
    };
  }

  /** Takes a free slot of a lane, whose semaphore has let one in: one that is ready, where there is one. */
  #takeSlot(lane: Lane): RenderSlot {
    const free = this.#renderer.slots[lane].filter((slot) => !this.#held.has(slot));
    const slot = free.find(({ isReady }) => isReady) ?? free[0];
    if (slot === undefined) throw new Error(`The ${lane} lane has no free slot.`);
    this.#held.add(slot);
    return slot;
  }

  waitingIn(lane: Lane): number {
    const { waiting } = this.#lanes[lane].slots;
    return lane === 'heavy' ? waiting + this.#costly.slots.waiting : waiting;
  }

  heldSlotsOf(lane: Lane): number {
    return this.#lanes[lane].slots.inside;
  }

  /** Lanes in which no more renders can wait, or the wait would be too long. */
  get crowded(): readonly Lane[] {
    return lanes.filter(
      (lane) => this.#renderer.slots[lane].length > 0 && this.#isCrowded(this.#lanes[lane]),
    );
  }

  /** Queues that a render passes, one after the other. */
  #rowsOf(lane: Lane, costMs: number): readonly Row[] {
    const isCostly = lane === 'heavy' && costMs > this.#maxForeseenMs;
    return isCostly ? [this.#costly, this.#lanes.heavy] : [this.#lanes[lane]];
  }

  get #maxForeseenMs(): number {
    return this.#limits.maxWaitMs * MAX_FORESEEN_SHARE;
  }

  #isCrowded(row: Row): boolean {
    return row.slots.isFull || this.#foreseeWaitMs(row) > this.#maxForeseenMs;
  }

  /** @throws MediaError `OVERLOADED` */
  #check(row: Row, lane: Lane): void {
    if (!this.#isCrowded(row)) return;
    throw new MediaError('OVERLOADED', {
      bottleneck: `${lane} lane`,
      retryAfterSeconds: this.#retryAfterSeconds(row),
    });
  }

  async #enter(
    row: Row,
    lane: Lane,
    costMs: number,
    signal: AbortSignal,
  ): Promise<HeldSlot['leave']> {
    const entry: Entry = { costMs };
    row.entries.add(entry);
    try {
      const leave = await row.slots.enter(signal, {
        bottleneck: `${lane} lane`,
        retryAfterSeconds: () => this.#retryAfterSeconds(row),
      });
      const sinceMs = this.#clock.nowMs();
      entry.sinceMs = sinceMs;
      return (isMeasured) => {
        leave();
        row.entries.delete(entry);
        const heldMs = this.#clock.nowMs() - sinceMs;
        const slowness = heldMs / costMs;
        const isTypical = slowness <= MAX_SLOWNESS * Math.max(row.slowness, 1);
        if (isMeasured && isTypical) row.slowness += (slowness - row.slowness) * LEARNING_RATE;
        return heldMs;
      };
    } catch (error) {
      row.entries.delete(entry);
      throw error;
    }
  }

  #retryAfterSeconds(row: Row): number {
    const seconds = Math.ceil(this.#foreseeWaitMs(row) / 1000);
    return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
  }

  /** Returns the time until a slot is free for one more, if the renders ahead take what is foreseen, in milliseconds. */
  #foreseeWaitMs({ slots, slotCount, entries, slowness }: Row): number {
    if (!slots.isTaken) return 0;
    const nowMs = this.#clock.nowMs();
    let sumMs = 0;
    for (const { costMs, sinceMs = nowMs } of entries) {
      const elapsedMs = nowMs - sinceMs;
      const leftMs = costMs * slowness - elapsedMs;
      sumMs += leftMs > 0 ? leftMs : elapsedMs * OVERDUE_SHARE;
    }
    return sumMs / slotCount;
  }
}
