import type { Size } from '../../../formats/image-facts.ts';
import type { Pixels } from '../pixels.ts';

/** Most rows that are sampled, and pixels of all of them. */
const MAX_ROWS = 24;
const MAX_SAMPLES = 2048;

/** Most colours of a palette. */
const MAX_COLOURS = 256;

/** Range of differences of two samples, and of differences of these. */
const DIFFERENCES = 1024;
const NO_DIFFERENCE = DIFFERENCES / 2;

/** Predictors of a sample: the left one, the one above, and their gradient. */
const PREDICTORS = 3;

/** Estimated result of lossless compression. */
export interface LosslessEstimate {
  readonly bytes: number;
  /** Colours of the sampled rows; 257 for any more. */
  readonly colours: number;
}

/**
 * Estimates the lossless size of a frame as WebP from some of its rows: by the entropy of the differences from
 * predictions; or by that of pixels that differ from both neighbours, or their index in a palette, plus a bit or less
 * per pixel for whether it differs. Renderings whose lossless form was smaller were not estimated at twice the lossy
 * one (1 620 of the corpus and the samples), except patterns of two colours.
 *
 * @param frame one frame
 */
export function estimateLossless(frame: Pixels, { widthPx, heightPx }: Size): LosslessEstimate {
  const { data, channels } = frame;
  const all = new Float64Array(PREDICTORS * channels * DIFFERENCES);
  const unlikeOnes = new Float64Array(all.length);
  const colours = new Set<number>();
  const rows = Math.max(1, Math.min(heightPx, MAX_ROWS, Math.floor(MAX_SAMPLES / widthPx)));
  const columns = Math.min(widthPx, MAX_SAMPLES);
  const rowBytes = widthPx * channels;
  const isColoured = channels >= 3;
  let seen = 0;
  let unlike = 0;
  for (let each = 0; each < rows; each += 1) {
    const row = Math.floor(((each + 0.5) * heightPx) / rows);
    for (let x = 0; x < columns; x += 1) {
      const at = row * rowBytes + x * channels;
      // Without a neighbour on one side, the other one replaces it.
      const above = row > 0 ? at - rowBytes : at - channels;
      const left = x > 0 ? at - channels : above;
      const corner = x > 0 && row > 0 ? above - channels : above;
      const isUnlike = !isSame(frame, at, left) && !isSame(frame, at, above);
      seen += 1;
      if (isUnlike) unlike += 1;
      if (colours.size <= MAX_COLOURS) colours.add(wordAt(frame, at));
      let [byLeft, byTop, bySlope] = [0, 0, 0];
      for (let turn = 0; turn < channels; turn += 1) {
        // Green first: red and blue are predicted from it.
        const channel = isColoured && turn < 2 ? 1 - turn : turn;
        const sample = data[at + channel] ?? 0;
        const one = data[left + channel] ?? 0;
        const two = data[above + channel] ?? 0;
        const slope = one + two - (data[corner + channel] ?? 0);
        const fromLeft = sample - one;
        const fromTop = sample - two;
        const fromSlope = sample - (slope < 0 ? 0 : slope > 255 ? 255 : slope);
        const goesAlong = isColoured && (channel === 0 || channel === 2);
        const base = channel * DIFFERENCES + NO_DIFFERENCE;
        const step = channels * DIFFERENCES;
        const first = base + fromLeft - (goesAlong ? byLeft : 0);
        const second = base + step + fromTop - (goesAlong ? byTop : 0);
        const third = base + 2 * step + fromSlope - (goesAlong ? bySlope : 0);
        if (turn === 0) [byLeft, byTop, bySlope] = [fromLeft, fromTop, fromSlope];
        count(all, first, second, third);
        if (isUnlike) count(unlikeOnes, first, second, third);
      }
    }
  }
  const isPalette = colours.size <= MAX_COLOURS;
  const indexBits = isPalette ? unlike * Math.log2(Math.max(2, colours.size)) : Infinity;
  const unlikeBits = Math.min(indexBits, leastBits(unlikeOnes, unlike));
  const maskBits = bitsOf(Float64Array.of(unlike, seen - unlike), seen);
  const bits = Math.min(leastBits(all, seen), unlikeBits + maskBits);
  return { bytes: (bits / seen) * ((widthPx * heightPx) / 8), colours: colours.size };
}

function count(counts: Float64Array, first: number, second: number, third: number): void {
  counts[first] = (counts[first] ?? 0) + 1;
  counts[second] = (counts[second] ?? 0) + 1;
  counts[third] = (counts[third] ?? 0) + 1;
}

/** Returns the bits of the differences by the best predictor. */
function leastBits(counts: Float64Array, total: number): number {
  const share = counts.length / PREDICTORS;
  const bits = Array.from({ length: PREDICTORS }, (_, index) =>
    bitsOf(counts.subarray(index * share, (index + 1) * share), total),
  );
  return Math.min(...bits);
}

/** Returns the bits of `total` symbols by their frequencies. */
function bitsOf(counts: Float64Array, total: number): number {
  let bits = 0;
  for (let at = 0; at < counts.length; at += 1) {
    const times = counts[at] ?? 0;
    if (times > 0) bits -= times * Math.log2(times / total);
  }
  return bits;
}

function isSame({ data, channels }: Pixels, one: number, other: number): boolean {
  for (let channel = 0; channel < channels; channel += 1) {
    if (data[one + channel] !== data[other + channel]) return false;
  }
  return true;
}

function wordAt({ data, channels }: Pixels, at: number): number {
  let word = 0;
  for (let channel = 0; channel < channels; channel += 1) {
    word = word * 256 + (data[at + channel] ?? 0);
  }
  return word;
}
