/** Pseudo-random numbers that repeat for the same seed (mulberry32, 32 bits of state). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from `min` to `max`, both inclusive. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** Returns a value between `min` and `max`; each decade is equally likely. */
  spread(min: number, max: number): number {
    return min * (max / min) ** this.next();
  }

  /** Returns the time until the next independent event, for a mean interval. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** @throws Error if `items` is empty */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('There is nothing to pick from.');
    return item;
  }

  /** Picks item `i` with probability `weights[i]` divided by the sum of all weights. */
  pickWeighted<Item>(items: readonly Item[], weights: readonly number[]): Item {
    let target = this.next() * weights.reduce((sum, weight) => sum + weight, 0);
    const item = items.find((_, index) => {
      target -= weights[index] ?? 0;
      return target < 0;
    });
    return item ?? this.pick(items);
  }

  shuffle<Item>(items: readonly Item[]): Item[] {
    const drawn = items.map((item) => ({ item, lot: this.next() }));
    return drawn.sort((one, other) => one.lot - other.lot).map(({ item }) => item);
  }
}
