/** Red, green and blue in 24 bits, red lowest as in memory. */
export type Rgb = number;

const CELL_BITS = 6;
const CELL_SHIFT = 8 - CELL_BITS;
const CELL_CENTRE = 1 << (CELL_SHIFT - 1);

/** Index of colours by squared distance. */
export class NearestColour {
  /** Sorted by green, so that a search can stop where green alone is too far. */
  readonly #sorted: readonly { readonly index: number; readonly rgb: Rgb }[];
  readonly #greens: Uint8Array;
  readonly #reds: Uint8Array;
  readonly #blues: Uint8Array;
  readonly #starts: Uint16Array;
  /** Nearest colour to the centre of each requested cell; else -1. */
  readonly #cells = new Int16Array(1 << (3 * CELL_BITS)).fill(-1);

  /** @param colours 1 to 256 colours */
  constructor(colours: readonly Rgb[]) {
    this.#sorted = colours
      .map((rgb, index) => ({ index, rgb }))
      .sort((one, other) => greenOf(one.rgb) - greenOf(other.rgb) || one.index - other.index);
    this.#reds = Uint8Array.from(this.#sorted, ({ rgb }) => rgb & 0xff);
    this.#greens = Uint8Array.from(this.#sorted, ({ rgb }) => greenOf(rgb));
    this.#blues = Uint8Array.from(this.#sorted, ({ rgb }) => (rgb >> 16) & 0xff);
    this.#starts = Uint16Array.from({ length: 256 }, (_, green) => {
      const start = this.#greens.findIndex((it) => it >= green);
      return start < 0 ? colours.length - 1 : start;
    });
  }

  /** Returns the index of the nearest colour; samples may have fractions. */
  find(red: number, green: number, blue: number): number {
    const [reds, greens, blues] = [this.#reds, this.#greens, this.#blues];
    const start = this.#starts[Math.min(255, Math.max(0, Math.round(green)))];
    let best = start;
    let least = Infinity;
    const visit = (at: number): boolean => {
      const dg = greens[at] - green;
      const byGreen = dg * dg;
      if (byGreen >= least) return false;
      const dr = reds[at] - red;
      const db = blues[at] - blue;
      const distance = dr * dr + byGreen + db * db;
      if (distance < least) {
        least = distance;
        best = at;
      }
      return true;
    };
    // The start must not stop the search in one direction: its neighbours may be nearer by green.
    for (let at = start; at < greens.length; at += 1) if (!visit(at)) break;
    for (let at = start - 1; at >= 0; at -= 1) if (!visit(at)) break;
    return this.#sorted[best].index;
  }

  /** Approximates `find` for whole samples: exact to their cell, and much faster. */
  findRoughly(red: number, green: number, blue: number): number {
    const [r, g, b] = [red >> CELL_SHIFT, green >> CELL_SHIFT, blue >> CELL_SHIFT];
    const cell = (((r << CELL_BITS) | g) << CELL_BITS) | b;
    const cached = this.#cells[cell];
    if (cached >= 0) return cached;
    const centre = (part: number): number => (part << CELL_SHIFT) + CELL_CENTRE;
    const found = this.find(centre(r), centre(g), centre(b));
    this.#cells[cell] = found;
    return found;
  }
}

function greenOf(rgb: Rgb): number {
  return (rgb >> 8) & 0xff;
}
