import { toIndex } from '../lookup-table.ts';
import type { Palette } from './choose-palette.ts';
import { NearestColour, type Rgb } from './nearest-colour.ts';

const RGB_MASK = 0xff_ff_ff;
const MAX_SAMPLE = 255;

export interface Indexing {
  readonly palette: Palette;
  /** Index of transparent pixels, outside of the palette. */
  readonly transparentIndex: number | undefined;
  /** Fraction of a pixel's error that its neighbours compensate. */
  readonly dither: number;
  /** Colour distance up to which a pixel counts as unchanged. */
  readonly maxFrameError: number;
}

/**
 * Converts frame after frame to indices of one palette, by Floyd-Steinberg error diffusion. An unchanged pixel keeps
 * its index, so that still areas do not flicker; white, black and transparent pixels stay exact.
 */
export class FrameIndexer {
  readonly #indexing: Indexing;
  readonly #colours: readonly Rgb[];
  readonly #exact: ReadonlyMap<Rgb, number>;
  readonly #nearest: NearestColour;
  readonly #maxError: number;
  #drawn: Uint32Array | undefined;
  #indices = new Uint8Array();

  constructor(indexing: Indexing) {
    const { palette, maxFrameError } = indexing;
    this.#indexing = indexing;
    this.#colours = palette.colours;
    this.#exact = new Map(
      palette.colours
        .map((rgb, index) => [rgb, index] as const)
        .filter(([rgb]) => palette.isExact || rgb === 0 || rgb === RGB_MASK),
    );
    this.#nearest = new NearestColour(palette.colours);
    this.#maxError = maxFrameError ** 2;
  }

  /** @param frame pixels, alpha highest, red lowest; 0 for pixels that are not opaque */
  index(frame: Uint32Array, widthPx: number): Uint8Array {
    const before = this.#drawn;
    const drawn = before ?? new Uint32Array(frame.length);
    // `Uint8Array.from` creates an intermediate list of millions of numbers, for which a worker has no heap.
    const indices = before === undefined ? new Uint8Array(frame.length) : this.#indices.slice();
    const { transparentIndex = 0 } = this.#indexing;
    // Red, green and blue of each pixel, with one more at both ends.
    let errors = new Float32Array(3 * (widthPx + 2));
    let errorsBelow = new Float32Array(3 * (widthPx + 2));
    let lastPixel = 0;
    let lastIndex = transparentIndex;
    for (let at = 0, x = 0; at < frame.length; at += 1, x += 1) {
      if (x === widthPx) {
        x = 0;
        [errors, errorsBelow] = [errorsBelow, errors];
        errorsBelow.fill(0);
      }
      const pixel = frame[at];
      if (before !== undefined && this.#isUnchanged(pixel, before[at])) continue;
      drawn[at] = pixel;
      if (pixel === 0) {
        indices[at] = transparentIndex;
        continue;
      }
      const rgb = pixel & RGB_MASK;
      if (pixel !== lastPixel) {
        lastPixel = pixel;
        lastIndex = this.#exact.get(rgb) ?? -1;
      }
      if (lastIndex >= 0) {
        indices[at] = lastIndex;
        continue;
      }
      indices[at] = this.#diffuse(rgb, 3 * (x + 1), errors, errorsBelow);
    }
    this.#drawn = drawn;
    this.#indices = indices;
    return indices;
  }

  #isUnchanged(pixel: number, before: number): boolean {
    if (pixel === before) return true;
    if (pixel === 0 || before === 0 || this.#maxError === 0) return false;
    if (this.#exact.has(pixel & RGB_MASK)) return false;
    const red = (pixel & 0xff) - (before & 0xff);
    const green = ((pixel >> 8) & 0xff) - ((before >> 8) & 0xff);
    const blue = ((pixel >> 16) & 0xff) - ((before >> 16) & 0xff);
    return red * red + green * green + blue * blue <= this.#maxError;
  }

  /** Chooses the colour of a pixel with its neighbours' errors, and spreads its own error. */
  #diffuse(rgb: Rgb, at: number, errors: Float32Array, errorsBelow: Float32Array): number {
    const { dither } = this.#indexing;
    const red = toIndex((rgb & 0xff) + errors[at], MAX_SAMPLE);
    const green = toIndex(((rgb >> 8) & 0xff) + errors[at + 1], MAX_SAMPLE);
    const blue = toIndex(((rgb >> 16) & 0xff) + errors[at + 2], MAX_SAMPLE);
    const index = this.#nearest.findRoughly(red, green, blue);
    const chosen = this.#colours[index];
    const unit = dither / 16;
    spreadError(errors, errorsBelow, at, (red - (chosen & 0xff)) * unit);
    spreadError(errors, errorsBelow, at + 1, (green - ((chosen >> 8) & 0xff)) * unit);
    spreadError(errors, errorsBelow, at + 2, (blue - ((chosen >> 16) & 0xff)) * unit);
    return index;
  }
}

/** Spreads an error in 16ths: 7 to the right; 3, 5 and 1 to the row below (Floyd and Steinberg). */
function spreadError(
  errors: Float32Array,
  errorsBelow: Float32Array,
  at: number,
  error: number,
): void {
  errors[at + 3] = errors[at + 3] + 7 * error;
  errorsBelow[at - 3] = errorsBelow[at - 3] + 3 * error;
  errorsBelow[at] = errorsBelow[at] + 5 * error;
  errorsBelow[at + 3] = errorsBelow[at + 3] + error;
}
