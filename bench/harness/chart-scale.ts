/** From values to places on paper. */
export interface Scale {
  readonly at: (value: number) => number;
  /** Values that are marked on the axis. */
  readonly ticks: readonly number[];
  readonly format: (tick: number) => string;
}

const MOST_TICKS = 8;

/** Equal distances for equal differences; the axis ends at its last mark or at `most`. */
export function linearScale(least: number, most: number, from: number, to: number): Scale {
  const span = Math.max(most - least, Number.MIN_VALUE);
  const decade = 10 ** Math.floor(Math.log10(span / MOST_TICKS));
  const step =
    decade * ([1, 2, 5, 10].find((factor) => span / (decade * factor) <= MOST_TICKS) ?? 10);
  const count = Math.floor(span / step + 1e-9);
  return {
    at: (value) => from + ((value - least) / span) * (to - from),
    ticks: Array.from({ length: count + 1 }, (_, index) => least + index * step),
    format: (tick) => String(Number(tick.toPrecision(6))),
  };
}

/** Equal distances for equal ratios, over whole decades. */
export function logScale(least: number, most: number, from: number, to: number): Scale {
  const first = Math.floor(Math.log10(least));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(most, least))));
  return {
    at: (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from),
    ticks: Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index)),
    format: (tick) => String(Number(tick.toPrecision(6))),
  };
}
