import { type Bottleneck, MediaError } from '../contract/errors.ts';

/** Bounds of a queue. */
export interface WaitQueueLimits {
  /** Entries that may wait. */
  readonly maxWaiting: number;
  /** Longest wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** Options of one entry of the queue. */
export interface WaitingOptions<Item> {
  /** By which `admitNext` decides whether a grant is fit for it. */
  readonly item: Item;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  /** The bottleneck, and when a retry is worth it, for the error. */
  readonly bottleneck: Bottleneck;
  readonly retryAfterSeconds: () => number;
}

interface Waiting<Item, Grant> {
  readonly item: Item;
  readonly admit: (grant: Grant) => void;
}

/**
 * A bounded queue for something scarce. What becomes free is granted to the first entry that it is fit
 * for. An entry whose client leaves is removed at once.
 */
export class WaitQueue<Item, Grant> {
  readonly #limits: WaitQueueLimits;
  readonly #waiting = new Set<Waiting<Item, Grant>>();

  constructor(limits: WaitQueueLimits) {
    this.#limits = limits;
  }

  get isFull(): boolean {
    return this.#waiting.size >= this.#limits.maxWaiting;
  }

  get length(): number {
    return this.#waiting.size;
  }

  /** All that wait, the next one first. */
  items(): Item[] {
    return [...this.#waiting].map(({ item }) => item);
  }

  /**
   * Waits until `admitNext` comes to this entry.
   *
   * @returns what was granted
   * @throws MediaError `OVERLOADED` if the queue is full or the wait too long; or `signal.reason`
   */
  join({ item, signal, bottleneck, retryAfterSeconds }: WaitingOptions<Item>): Promise<Grant> {
    const overloaded = (): MediaError =>
      new MediaError('OVERLOADED', { bottleneck, retryAfterSeconds: retryAfterSeconds() });
    if (this.isFull) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandon);
        this.#waiting.delete(waiting);
      };
      const abandon = (): void => {
        stopWaiting();
        reject(signal.reason);
      };
      const admit = (grant: Grant): void => {
        stopWaiting();
        resolve(grant);
      };
      const giveUp = (): void => {
        stopWaiting();
        reject(overloaded());
      };
      const waiting = { item, admit };
      const timer = setTimeout(giveUp, this.#limits.maxWaitMs);
      signal.addEventListener('abort', abandon, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /**
   * Grants something to the first entry, or to the first of those that are fit for it.
   *
   * @param isFit without it, all are
   * @returns whether there was such an entry
   */
  admitNext(grant: Grant, isFit: (item: Item) => boolean = () => true): boolean {
    for (const next of this.#waiting) {
      if (!isFit(next.item)) continue;
      next.admit(grant);
      return true;
    }
    return false;
  }
}
