import type { Size } from './kinds.ts';
import { parameters } from './tables.ts';

/** Values of `size` in pixels, in ascending order. */
export const sizes: readonly Size[] = /* @__PURE__ */ (parameters.size?.values ?? []).map(
  Number,
) as Size[];

/**
 * Returns the smallest size that is at least as wide as an element, or else the largest size.
 *
 * @param cssPx width of the element in CSS pixels
 * @param dpr device pixels per CSS pixel: `devicePixelRatio` in browsers
 */
export function nearestSize(cssPx: number, dpr = 1): Size {
  if (!(cssPx > 0 && dpr > 0)) {
    throw new RangeError(
      `Expected a width and a pixel ratio above 0 but received ${cssPx} and ${dpr}.`,
    );
  }
  return sizes.find((size) => size >= cssPx * dpr) ?? (sizes.at(-1) as Size);
}

/** Returns the value of a `srcset` attribute, with a URL for each pixel ratio. @param cssPx width in CSS pixels */
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
