import type { Clock } from './ports.ts';

interface Entry<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

/** A map whose entries end by themselves, and which holds so many at most: the oldest one goes first. */
export class ExpiringMap<Value> {
  readonly #maxEntries: number;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<Value>>();

  constructor(maxEntries: number, clock: Clock) {
    this.#maxEntries = maxEntries;
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.untilMs > this.#clock.nowMs()) return entry?.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** @param forMs how long the entry lasts, in milliseconds */
  set(key: string, value: Value, forMs: number): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, untilMs: this.#clock.nowMs() + forMs });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#maxEntries && oldest !== undefined) this.#entries.delete(oldest);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** Removes the entries whose keys fit. */
  deleteWhere(fits: (key: string) => boolean): void {
    for (const key of this.#entries.keys()) {
      if (fits(key)) this.#entries.delete(key);
    }
  }
}
