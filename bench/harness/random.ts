/** Numbers that look random and are the same for the same seed (mulberry32, 32 bits of state). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, but not, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Between `least` and `most`, small values as likely per decade as large ones. */
  spread(least: number, most: number): number {
    return least * (most / least) ** this.next();
  }

  /** Waiting times of what happens at random moments, by their mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** @throws Error if there is nothing to pick from */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('There is nothing to pick from.');
    return item;
  }

  /** A shuffled copy. */
  shuffle<Item>(items: readonly Item[]): Item[] {
    const drawn = items.map((item) => ({ item, lot: this.next() }));
    return drawn.sort((one, other) => one.lot - other.lot).map(({ item }) => item);
  }
}

/** Picks by weight: index `i` as often as `weights[i]` says, beside the sum of all. */
export function createWeightedChoice(weights: readonly number[]): (random: Random) => number {
  const bounds: number[] = [];
  for (const weight of weights) bounds.push((bounds.at(-1) ?? 0) + weight);
  return (random) => {
    const target = random.next() * (bounds.at(-1) ?? 0);
    return bounds.findIndex((bound) => bound > target);
  };
}

/**
 * Ranks by Zipf's law, 0 the most popular, without a table: the number of ranks may grow all the time.
 * Rejection-inversion (Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone
 * discrete distributions", ACM TOMACS 1996), exact for any exponent above 0.
 *
 * @returns draws a rank from 0 up to, but not, `count`; rank `r` as often as `(r + 1) ** -exponent` says
 */
export function createZipfRanks(exponent: number): (count: number, random: Random) => number {
  const power = 1 - exponent;
  const isLogarithm = Math.abs(power) < 1e-9;
  /** Of `x ** -exponent`. */
  const integral = (x: number): number => (isLogarithm ? Math.log(x) : (x ** power - 1) / power);
  const inverse = (area: number): number =>
    isLogarithm ? Math.exp(area) : Math.max(1 + area * power, 0) ** (1 / power);
  return (count, random) => {
    const high = integral(count + 0.5);
    const low = integral(1.5) - 1;
    for (;;) {
      const area = high + random.next() * (low - high);
      const rank = Math.min(count, Math.max(1, Math.round(inverse(area))));
      if (area >= integral(rank + 0.5) - rank ** -exponent) return rank - 1;
    }
  };
}
