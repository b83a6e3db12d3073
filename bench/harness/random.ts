/** Pseudo-random numbers that repeat for the same seed (mulberry32, 32 bits of state). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 (included) to 1 (excluded). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Returns a value between `least` and `most`; each decade is equally likely. */
  spread(least: number, most: number): number {
    return least * (most / least) ** this.next();
  }

  /** Returns the time until the next of independent events, by their mean distance. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** @throws Error if `items` is empty */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('There is nothing to pick from.');
    return item;
  }

  /** Picks item `i` as often as `weights[i]` says, relative to the sum of all weights. */
  pickWeighted<Item>(items: readonly Item[], weights: readonly number[]): Item {
    let target = this.next() * weights.reduce((sum, weight) => sum + weight, 0);
    const item = items.find((_, index) => {
      target -= weights[index] ?? 0;
      return target < 0;
    });
    return item ?? this.pick(items);
  }

  /** Returns a shuffled copy. */
  shuffle<Item>(items: readonly Item[]): Item[] {
    const drawn = items.map((item) => ({ item, lot: this.next() }));
    return drawn.sort((one, other) => one.lot - other.lot).map(({ item }) => item);
  }
}
