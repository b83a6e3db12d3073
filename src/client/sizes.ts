import type { Size } from './kinds.ts';
import { parameters } from './tables.ts';

/** Widths that `size` accepts, in pixels, in ascending order. */
export const sizes: readonly Size[] = /* @__PURE__ */ (parameters.size?.values ?? []).map(
  Number,
) as Size[];

/**
 * Returns the first size that is not smaller than an element, or the largest size for a larger element.
 *
 * @param cssPx width of the element in CSS pixels
 * @param dpr device pixels per CSS pixel; in browsers, `devicePixelRatio`
 */
export function nearestSize(cssPx: number, dpr = 1): Size {
  if (!(cssPx > 0 && dpr > 0)) {
    throw new RangeError(
      `Expected a width and a pixel ratio above 0 but received ${cssPx} and ${dpr}.`,
    );
  }
  return sizes.find((size) => size >= cssPx * dpr) ?? (sizes.at(-1) as Size);
}

/**
 * Returns the value of a `srcset` attribute: a URL for each pixel ratio, without repetitions.
 *
 * @param cssPx width of the element in CSS pixels
 * @param urlOf returns the URL of a size
 */
export function srcset(
  cssPx: number,
  urlOf: (size: Size) => string,
  ratios: readonly number[] = [1, 2, 3],
): string {
  const candidates = new Map<Size, number>();
  for (const dpr of [...ratios].sort((a, b) => a - b)) {
    const size = nearestSize(cssPx, dpr);
    if (!candidates.has(size)) candidates.set(size, dpr);
  }
  return Array.from(candidates, ([size, dpr]) => `${urlOf(size)} ${dpr}x`).join(', ');
}
