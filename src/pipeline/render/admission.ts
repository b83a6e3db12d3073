import { MediaError } from '../../contract/errors.ts';
import type { Tools } from '../meter.ts';
import { type Lane, lanes, type Renderer, type RenderSlot } from '../ports.ts';
import { Semaphore } from '../semaphore.ts';

/** Limits of the lanes (contract §6). */
export interface AdmissionLimits {
  /** Maximum number of waiting renders per core and lane. */
  readonly maxWaitingPerCore: number;
  /** Cores of all workers; the light lane has one slot more. */
  readonly cores: number;
  readonly maxWaitMs: number;
}

export interface AdmittedSlot {
  readonly slot: RenderSlot;
  /**
   * Frees the slot, and returns the milliseconds in it. Call once.
   *
   * @param isMeasured whether the time is typical; that of a stopped render is not
   */
  readonly free: (isMeasured: boolean) => number;
}

/** A render that waits for a slot, or occupies one since `sinceMs`. */
interface Entry {
  readonly costMs: number;
  sinceMs?: number;
}

interface Queue {
  readonly slots: Semaphore;
  readonly slotCount: number;
  readonly entries: Set<Entry>;
  /** Average ratio of the time in a slot to the estimate. */
  slowdown: number;
}

/**
 * Maximum estimated wait of an admitted render, as a fraction of the maximum wait: estimates may be too low, and a
 * rejection must be immediate. Documented for `QUEUE_TIMEOUT_MS`.
 */
const MAX_ESTIMATED_FRACTION = 1 / 2;

/** Fraction of the heavy slots for costly renders, which take longer than the longest admitted wait. */
const MAX_COSTLY_FRACTION = 1 / 2;

/** Weight of one render in the average (as in RFC 6298). */
const LEARNING_RATE = 1 / 8;

/** Ratio to its estimate above which a render is an outlier: an expensive original, not a slow machine. */
const MAX_SLOWDOWN = 8;

/** Estimated remaining time of an overdue render, as a fraction of its elapsed time. */
const OVERDUE_FRACTION = 1 / 2;

/** Maximum `Retry-After`, in seconds; longer estimates are unreliable. */
const MAX_RETRY_AFTER_SECONDS = 60;

/**
 * CPU slots in two lanes, each with a queue. Each lane has a slot per core, and the system divides the cores by
 * niceness: light renders first. So animations never delay avatars, and no core is reserved. Costly renders, of about
 * ten seconds, may occupy only half of the heavy slots, and have a queue of their own.
 *
 * A render that could not begin in time is rejected immediately. Its wait is estimated from the costs ahead of it and
 * the present slowdown of the lane.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #tools: Pick<Tools, 'clock' | 'meter'>;
  readonly #renderer: Renderer;
  readonly #occupied = new Set<RenderSlot>();
  readonly #lanes: Readonly<Record<Lane, Queue>>;
  readonly #costly: Queue;

  constructor(renderer: Renderer, limits: AdmissionLimits, tools: Pick<Tools, 'clock' | 'meter'>) {
    const { maxWaitingPerCore, cores, maxWaitMs } = limits;
    const createQueue = (lane: Lane, slotCount: number): Queue => {
      const maxWaiting = maxWaitingPerCore * Math.min(slotCount, cores);
      return {
        slots: new Semaphore({ slots: slotCount, maxWaiting, maxWaitMs }, `${lane} lane`),
        slotCount,
        entries: new Set(),
        slowdown: 1,
      };
    };
    this.#limits = limits;
    this.#tools = tools;
    this.#renderer = renderer;
    const { light, heavy } = renderer.slots;
    const costlySlots = Math.max(1, Math.floor(heavy.length * MAX_COSTLY_FRACTION));
    this.#lanes = {
      light: createQueue('light', light.length),
      heavy: createQueue('heavy', heavy.length),
    };
    this.#costly = createQueue('heavy', costlySlots);
  }

  /**
   * Waits for a slot. Without heavy slots, all renders share the light ones.
   *
   * @param costMs estimated milliseconds of one core
   * @throws MediaError `OVERLOADED` if the queue is full, or the wait is, or would be, too long; or `signal.reason`
   */
  async acquire(kind: Lane, costMs: number, signal: AbortSignal): Promise<AdmittedSlot> {
    const { clock, meter } = this.#tools;
    signal.throwIfAborted();
    const lane = this.#renderer.slots[kind].length === 0 ? 'light' : kind;
    const arrivedMs = clock.nowMs();
    const queues = this.#queuesFor(lane, costMs);
    for (const queue of queues) this.#check(queue, lane);
    const freeSlots: AdmittedSlot['free'][] = [];
    try {
      for (const queue of queues) freeSlots.unshift(await this.#acquire(queue, costMs, signal));
    } catch (error) {
      for (const free of freeSlots) free(false);
      throw error;
    }
    meter.time('queueWait', lane, clock.nowMs() - arrivedMs);
    const slot = this.#acquireSlot(lane);
    return {
      slot,
      free: (isMeasured) => {
        this.#occupied.delete(slot);
        return freeSlots.map((free) => free(isMeasured))[0] ?? 0;
      },
    };
  }

  waitingIn(lane: Lane): number {
    const { waiting } = this.#lanes[lane].slots;
    return lane === 'heavy' ? waiting + this.#costly.slots.waiting : waiting;
  }

  occupiedSlotsOf(lane: Lane): number {
    return this.#lanes[lane].slots.inUse;
  }

  get overloaded(): readonly Lane[] {
    return lanes.filter(
      (lane) => this.#renderer.slots[lane].length > 0 && this.#wouldReject(this.#lanes[lane]),
    );
  }

  /** Acquires a free slot, preferably a ready one. */
  #acquireSlot(lane: Lane): RenderSlot {
    const free = this.#renderer.slots[lane].filter((slot) => !this.#occupied.has(slot));
    const slot = free.find(({ isReady }) => isReady) ?? free[0];
    if (slot === undefined) throw new Error(`The ${lane} lane has no free slot.`);
    this.#occupied.add(slot);
    return slot;
  }

  /** Returns the queues that a render passes, in this sequence. */
  #queuesFor(lane: Lane, costMs: number): readonly Queue[] {
    const isCostly = lane === 'heavy' && costMs > this.#maxEstimatedMs;
    return isCostly ? [this.#costly, this.#lanes.heavy] : [this.#lanes[lane]];
  }

  get #maxEstimatedMs(): number {
    return this.#limits.maxWaitMs * MAX_ESTIMATED_FRACTION;
  }

  #wouldReject(queue: Queue): boolean {
    return queue.slots.isFull || this.#estimateWaitMs(queue) > this.#maxEstimatedMs;
  }

  /** @throws MediaError `OVERLOADED` */
  #check(queue: Queue, lane: Lane): void {
    if (!this.#wouldReject(queue)) return;
    throw new MediaError('OVERLOADED', {
      bottleneck: `${lane} lane`,
      retryAfterSeconds: this.#retryAfterSeconds(queue),
    });
  }

  async #acquire(queue: Queue, costMs: number, signal: AbortSignal): Promise<AdmittedSlot['free']> {
    const { clock } = this.#tools;
    const entry: Entry = { costMs };
    queue.entries.add(entry);
    try {
      const free = await queue.slots.acquire(signal, () => this.#retryAfterSeconds(queue));
      const sinceMs = clock.nowMs();
      entry.sinceMs = sinceMs;
      return (isMeasured) => {
        free();
        queue.entries.delete(entry);
        const tookMs = clock.nowMs() - sinceMs;
        const slowdown = tookMs / costMs;
        const isTypical = slowdown <= MAX_SLOWDOWN * Math.max(queue.slowdown, 1);
        if (isMeasured && isTypical) queue.slowdown += (slowdown - queue.slowdown) * LEARNING_RATE;
        return tookMs;
      };
    } catch (error) {
      queue.entries.delete(entry);
      throw error;
    }
  }

  #retryAfterSeconds(queue: Queue): number {
    const seconds = Math.ceil(this.#estimateWaitMs(queue) / 1000);
    return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
  }

  /** Returns the estimated time until another render has a slot, in milliseconds. */
  #estimateWaitMs({ slots, slotCount, entries, slowdown }: Queue): number {
    if (!slots.isExhausted) return 0;
    const nowMs = this.#tools.clock.nowMs();
    let sumMs = 0;
    for (const { costMs, sinceMs = nowMs } of entries) {
      const elapsedMs = nowMs - sinceMs;
      const leftMs = costMs * slowdown - elapsedMs;
      sumMs += leftMs > 0 ? leftMs : elapsedMs * OVERDUE_FRACTION;
    }
    return sumMs / slotCount;
  }
}
