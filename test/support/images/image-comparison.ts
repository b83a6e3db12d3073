import pixelmatch from 'pixelmatch';
import sharp from 'sharp';

/** An image, decoded: every frame composed, 8-bit RGBA. */
export interface DecodedImage {
  readonly widthPx: number;
  /** Height of one frame. */
  readonly heightPx: number;
  readonly frames: readonly Uint8Array[];
  /** One per frame; `undefined` for a still. */
  readonly delaysMs: readonly number[] | undefined;
  /** How often the animation plays, 0 for ever; `undefined` for a still. */
  readonly plays: number | undefined;
}

/**
 * How alike two images must be:
 * `exact`: every sample is equal, what lies below transparent pixels included;
 * `lossy`: what a decoder or an encoder may round otherwise on another processor;
 * `palette`: also what a dither may then place otherwise.
 */
export type PixelRule = 'exact' | 'lossy' | 'palette';

interface Tolerance {
  /** pixelmatch's threshold on the distance in YIQ: 0.1 is a step of about 26 of 255 in grey. */
  readonly pixelThreshold: number;
  /** Pixels of a frame that may lie over the threshold, as a share of all. */
  readonly maxDifferingShare: number;
  /** Mean difference of a frame, per channel, colours weighted by alpha, in levels of 255. */
  readonly maxMeanDifference: number;
  /** Difference of alpha that counts as one, in levels of 255. */
  readonly alphaThreshold: number;
}

/**
 * Stated thresholds; `exact` has none.
 *
 * Measured between two builds of the same codecs, x64 with its vector code and WebAssembly: `exact`
 * rows were equal in every sample; of `lossy` rows at most 0.1 % of the pixels differed and the mean
 * by 0.1; of `palette` rows 0.7 % and 1.2.
 */
const tolerances = {
  lossy: {
    pixelThreshold: 0.05,
    maxDifferingShare: 0.005,
    maxMeanDifference: 0.5,
    alphaThreshold: 8,
  },
  palette: {
    pixelThreshold: 0.1,
    maxDifferingShare: 0.015,
    maxMeanDifference: 2,
    alphaThreshold: 128,
  },
} as const satisfies Partial<Record<PixelRule, Tolerance>>;

/** Decodes an image with all its frames. */
export async function decodeImage(bytes: Uint8Array): Promise<DecodedImage> {
  const image = sharp(bytes, { animated: true, limitInputPixels: false });
  const { pages = 1, pageHeight, delay, loop } = await image.metadata();
  const { data, info } = await image
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const heightPx = pageHeight ?? info.height;
  const frameBytes = info.width * heightPx * info.channels;
  return {
    widthPx: info.width,
    heightPx,
    frames: Array.from({ length: pages }, (_, i) =>
      data.subarray(i * frameBytes, (i + 1) * frameBytes),
    ),
    delaysMs: pages > 1 ? delay : undefined,
    plays: pages > 1 ? loop : undefined,
  };
}

/**
 * Compares two images in everything that can be seen: size, frames, timing, pixels.
 *
 * @returns what differs, a sentence each; nothing where they are alike
 */
export function compareImages(
  expected: DecodedImage,
  actual: DecodedImage,
  rule: PixelRule,
): string[] {
  const differences = compareShape(expected, actual);
  if (differences.length > 0) return differences;
  return expected.frames.flatMap((frame, index) => {
    const other = actual.frames[index] ?? new Uint8Array();
    const found =
      rule === 'exact'
        ? compareExactly(frame, other)
        : [
            ...compareFrames(frame, other, expected, tolerances[rule]),
            ...findBetterNeighbour(expected.frames, index, other),
          ];
    return found.map((difference) => `frame ${index + 1}: ${difference}`);
  });
}

/** Draws where two frames of one size differ, in red over a faint copy, as RGBA. */
export function drawDifference(
  expected: Uint8Array,
  actual: Uint8Array,
  { widthPx, heightPx }: DecodedImage,
): Uint8Array {
  const output = new Uint8Array(expected.length);
  pixelmatch(expected, actual, output, widthPx, heightPx, { threshold: 0.01, includeAA: true });
  return output;
}

function compareShape(expected: DecodedImage, actual: DecodedImage): string[] {
  const facts = (image: DecodedImage) => ({
    size: `${image.widthPx}x${image.heightPx}`,
    frames: image.frames.length,
    delays: image.delaysMs?.join(' '),
    plays: image.plays,
  });
  const wanted = facts(expected);
  const given = facts(actual);
  return (Object.keys(wanted) as (keyof typeof wanted)[])
    .filter((fact) => wanted[fact] !== given[fact])
    .map((fact) => `expected ${fact} ${wanted[fact]} but received ${given[fact]}`);
}

function compareExactly(expected: Uint8Array, actual: Uint8Array): string[] {
  let samples = 0;
  let largest = 0;
  expected.forEach((sample, index) => {
    const difference = Math.abs(sample - (actual[index] ?? 0));
    if (difference > 0) samples += 1;
    largest = Math.max(largest, difference);
  });
  return samples === 0 ? [] : [`${samples} samples differ, by ${largest} at most`];
}

function compareFrames(
  expected: Uint8Array,
  actual: Uint8Array,
  { widthPx, heightPx }: DecodedImage,
  tolerance: Tolerance,
): string[] {
  const pixels = widthPx * heightPx;
  const found: string[] = [];
  const reportShare = (count: number, what: string): void => {
    if (count > pixels * tolerance.maxDifferingShare) {
      const percent = (100 * count) / pixels;
      found.push(`${what} of ${percent.toFixed(2)} % of the pixels differs`);
    }
  };
  // Without its exception for edges, which would forgive a shift by a pixel.
  const options = { threshold: tolerance.pixelThreshold, includeAA: true };
  reportShare(pixelmatch(expected, actual, undefined, widthPx, heightPx, options), 'the colour');
  reportShare(countAlphaDifferences(expected, actual, tolerance.alphaThreshold), 'the alpha');
  measureMeanDifferences(expected, actual).forEach((mean, channel) => {
    if (mean > tolerance.maxMeanDifference) {
      found.push(`${channelNames[channel]} differs by ${mean.toFixed(2)} levels in the mean`);
    }
  });
  return found;
}

/** Neighbouring frames may differ by less than a tolerance; this tells them apart all the same. */
function findBetterNeighbour(
  frames: readonly Uint8Array[],
  index: number,
  actual: Uint8Array,
): string[] {
  const distanceTo = (frame: Uint8Array | undefined): number =>
    frame?.reduce((sum, sample, at) => sum + Math.abs(sample - (actual[at] ?? 0)), 0) ?? Infinity;
  const distance = distanceTo(frames[index]);
  return [index - 1, index + 1]
    .filter((neighbour) => distanceTo(frames[neighbour]) < distance / 2)
    .map((neighbour) => `it looks like frame ${neighbour + 1}`);
}

const channelNames = ['red', 'green', 'blue', 'alpha'];

function countAlphaDifferences(
  expected: Uint8Array,
  actual: Uint8Array,
  threshold: number,
): number {
  let count = 0;
  for (let at = 3; at < expected.length; at += 4) {
    if (Math.abs((expected[at] ?? 0) - (actual[at] ?? 0)) >= threshold) count += 1;
  }
  return count;
}

/**
 * Mean difference per channel with its sign, so that noise cancels out and a shift of the whole
 * image does not.
 */
function measureMeanDifferences(expected: Uint8Array, actual: Uint8Array): number[] {
  const sums = [0, 0, 0, 0];
  for (let at = 0; at < expected.length; at += 4) {
    const weightExpected = (expected[at + 3] ?? 0) / 255;
    const weightActual = (actual[at + 3] ?? 0) / 255;
    for (let channel = 0; channel < 3; channel += 1) {
      sums[channel] =
        (sums[channel] ?? 0) +
        (expected[at + channel] ?? 0) * weightExpected -
        (actual[at + channel] ?? 0) * weightActual;
    }
    sums[3] = (sums[3] ?? 0) + (expected[at + 3] ?? 0) - (actual[at + 3] ?? 0);
  }
  return sums.map((sum) => Math.abs(sum) / (expected.length / 4));
}
