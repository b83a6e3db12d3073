import { NearestColour, type Rgb } from './nearest-colour.ts';

const RGB_MASK = 0xff_ff_ff;

/** White and black, which stay exact. */
const KEPT: readonly Rgb[] = [0xff_ff_ff, 0x00_00_00];

/** Maximum of sampled pixels; of larger images, every n-th is sampled. */
const MAX_SAMPLES = 1 << 20;

/** Bits per channel of a cell. */
const CELL_BITS = 5;
const CELL_SHIFT = 8 - CELL_BITS;

/** Rounds in which colours move to the mean of their nearest cells. */
const ROUNDS = 3;

export interface Palette {
  readonly colours: readonly Rgb[];
  /** Whether the palette contains all colours of the image. */
  readonly isExact: boolean;
}

/**
 * Chooses the colours for an image: its own if they fit, else the nearest by squared distance, with white and black
 * exact.
 *
 * Cells of similar colours are divided where they differ most (a median cut by variance); rounds of k-means then move
 * the means of the groups.
 *
 * @param pixels of all frames, alpha highest, red lowest; 0 for pixels that are not opaque
 */
export function choosePalette(pixels: Uint32Array, maxColours: number): Palette {
  const own = findColours(pixels, maxColours);
  if (own !== undefined) return { colours: own, isExact: true };
  const kept = KEPT.filter((rgb) => pixels.includes((rgb | 0xff_00_00_00) >>> 0));
  const cells = gatherCells(pixels, new Set(kept));
  const chosen = moveToMeans(cells, divideCells(cells, maxColours - kept.length));
  return { colours: [...kept, ...chosen], isExact: false };
}

/** Returns all colours of the pixels; `undefined` if these exceed `maxColours`. */
function findColours(pixels: Uint32Array, maxColours: number): Rgb[] | undefined {
  const found = new Set<number>();
  let last = 0;
  for (let at = 0; at < pixels.length; at += 1) {
    const pixel = pixels[at];
    if (pixel === last || pixel === 0) continue;
    last = pixel;
    found.add(pixel & RGB_MASK);
    if (found.size > maxColours) return undefined;
  }
  return [...found].sort((one, other) => one - other);
}

/** Counts and means of groups of similar pixels. */
interface Cells {
  readonly counts: Float64Array;
  /** Red, green and blue. */
  readonly means: readonly [Float64Array, Float64Array, Float64Array];
}

function gatherCells(pixels: Uint32Array, except: ReadonlySet<Rgb>): Cells {
  const step = Math.ceil(pixels.length / MAX_SAMPLES) | 1;
  /** Count of each cell, and sums of its red, green and blue. */
  const sums = new Float64Array(4 << (3 * CELL_BITS));
  for (let at = 0; at < pixels.length; at += step) {
    const pixel = pixels[at];
    if (pixel === 0 || except.has(pixel & RGB_MASK)) continue;
    const [red, green, blue] = [pixel & 0xff, (pixel >> 8) & 0xff, (pixel >> 16) & 0xff];
    const [r, g, b] = [red >> CELL_SHIFT, green >> CELL_SHIFT, blue >> CELL_SHIFT];
    addTo(sums, (((r << CELL_BITS) | g) << CELL_BITS) | b, 1, red, green, blue);
  }
  const filled: number[] = [];
  for (let at = 0; at < sums.length; at += 4) if (sums[at] > 0) filled.push(at);
  const mean = (channel: number): Float64Array =>
    Float64Array.from(filled, (at) => sums[at + channel] / sums[at]);
  return {
    counts: Float64Array.from(filled, (at) => sums[at]),
    means: [mean(1), mean(2), mean(3)],
  };
}

function addTo(
  sums: Float64Array,
  group: number,
  count: number,
  red: number,
  green: number,
  blue: number,
): void {
  const at = 4 * group;
  sums[at] = sums[at] + count;
  sums[at + 1] = sums[at + 1] + count * red;
  sums[at + 2] = sums[at + 2] + count * green;
  sums[at + 3] = sums[at + 3] + count * blue;
}

interface Group {
  readonly members: Int32Array;
  readonly mean: readonly [number, number, number];
  /** Sum of squared distances from the mean. */
  readonly error: number;
  readonly channel: 0 | 1 | 2;
}

function divideCells(cells: Cells, maxGroups: number): Group[] {
  const groups = [measureGroup(cells, Int32Array.from(cells.counts.keys()))];
  while (groups.length < maxGroups) {
    const worst = groups.reduce((one, other) => (other.error > one.error ? other : one));
    const samples = cells.means[worst.channel];
    const middle = worst.mean[worst.channel];
    const lower = worst.members.filter((cell) => samples[cell] <= middle);
    const upper = worst.members.filter((cell) => samples[cell] > middle);
    if (lower.length === 0 || upper.length === 0) break; // the members no longer differ
    groups[groups.indexOf(worst)] = measureGroup(cells, lower);
    groups.push(measureGroup(cells, upper));
  }
  return groups;
}

function measureGroup({ counts, means }: Cells, members: Int32Array): Group {
  let total = 0;
  for (const cell of members) total += counts[cell];
  const measure = (samples: Float64Array): { readonly mean: number; readonly error: number } => {
    let sum = 0;
    let squares = 0;
    for (const cell of members) {
      const count = counts[cell];
      const sample = samples[cell];
      sum += count * sample;
      squares += count * sample * sample;
    }
    return { mean: sum / total, error: Math.max(0, squares - (sum * sum) / total) };
  };
  const [red, green, blue] = [measure(means[0]), measure(means[1]), measure(means[2])];
  const most = Math.max(red.error, green.error, blue.error);
  return {
    members,
    mean: [red.mean, green.mean, blue.mean],
    error: red.error + green.error + blue.error,
    channel: most === green.error ? 1 : most === red.error ? 0 : 2,
  };
}

function moveToMeans({ counts, means }: Cells, groups: readonly Group[]): Rgb[] {
  let colours = groups.map(({ mean }) => toRgb(mean));
  const [reds, greens, blues] = means;
  for (let round = 0; round < ROUNDS; round += 1) {
    const nearest = new NearestColour(colours);
    const sums = new Float64Array(4 * colours.length);
    for (const [cell, count] of counts.entries()) {
      const [red, green, blue] = [reds[cell], greens[cell], blues[cell]];
      addTo(sums, nearest.find(red, green, blue), count, red, green, blue);
    }
    colours = colours.map((rgb, index) => {
      const [count = 0, red = 0, green = 0, blue = 0] = sums.subarray(4 * index, 4 * index + 4);
      return count === 0 ? rgb : toRgb([red / count, green / count, blue / count]);
    });
  }
  return [...new Set(colours)];
}

function toRgb([red, green, blue]: readonly [number, number, number]): Rgb {
  return Math.round(red) | (Math.round(green) << 8) | (Math.round(blue) << 16);
}
