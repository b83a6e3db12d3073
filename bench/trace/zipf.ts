import type { Random } from '../harness/random.ts';

/**
 * Ranks by Zipf's law, 0 the most popular, without a table: the number of ranks may grow all the time.
 * Rejection-inversion (Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone
 * discrete distributions", ACM TOMACS 1996), exact for any exponent above 0.
 */
export class ZipfRanks {
  readonly #exponent: number;

  constructor(exponent: number) {
    this.#exponent = exponent;
  }

  /** A rank from 0 up to, but not, `count`; rank `r` as often as `(r + 1) ** -exponent` says. */
  next(count: number, random: Random): number {
    const high = this.#integral(count + 0.5);
    const low = this.#integral(1.5) - 1;
    for (;;) {
      const area = high + random.next() * (low - high);
      const place = this.#inverse(area);
      const rank = Math.min(count, Math.max(1, Math.round(place)));
      if (area >= this.#integral(rank + 0.5) - rank ** -this.#exponent) return rank - 1;
    }
  }

  /** Of `x ** -exponent`. */
  #integral(x: number): number {
    const power = 1 - this.#exponent;
    return Math.abs(power) < 1e-9 ? Math.log(x) : (x ** power - 1) / power;
  }

  #inverse(area: number): number {
    const power = 1 - this.#exponent;
    return Math.abs(power) < 1e-9 ? Math.exp(area) : Math.max(1 + area * power, 0) ** (1 / power);
  }
}
