/** Returns a function's values at `steps + 1` equal steps from 0 to 1; from sample `white` on, at 1. */
export function tabulate(
  compute: (fraction: number) => number,
  steps: number,
  white = steps,
): Float64Array {
  return Float64Array.from({ length: steps + 1 }, (_, step) => compute(Math.min(1, step / white)));
}

/** Rounds to an index from 0 to `max`. */
export function toIndex(value: number, max: number): number {
  return value <= 0 ? 0 : value >= max ? max : (value + 0.5) | 0;
}

/** Converts linear light to a sample of sRGB, both 0 to 1 (IEC 61966-2-1). */
export function toSrgb(light: number): number {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
}
