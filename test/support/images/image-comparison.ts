import pixelmatch from 'pixelmatch';
import sharp from 'sharp';

/** A decoded image: composed frames of 8-bit RGBA. */
export type DecodedImage = Awaited<ReturnType<typeof decodeImage>>;

/**
 * Tolerance of a comparison:
 * `exact`: all samples are equal, also in transparent pixels;
 * `lossy`: permits other rounding by decoders and encoders on another processor;
 * `palette`: also permits other dithering.
 */
export type PixelRule = 'exact' | 'lossy' | 'palette';

/**
 * Thresholds. Measured between two builds of the same codecs, x64 with vector code and WebAssembly: at most 0.1 % of the
 * pixels of `lossy` rows differed, and the mean by 0.1; for `palette` rows, 0.7 % and 1.2.
 */
const tolerances = {
  lossy: {
    /** pixelmatch's threshold on the distance in YIQ: 0.1 is a step of about 26 of 255 in grey. */
    pixelThreshold: 0.05,
    /** Maximum fraction of a frame's pixels over the threshold. */
    maxDifferingFraction: 0.005,
    /** Maximum mean difference of a frame per channel, in levels of 255; alpha weights colours. */
    maxMeanDifference: 0.5,
    /** Minimum difference of alpha that counts, in levels of 255. */
    alphaThreshold: 8,
  },
  palette: {
    pixelThreshold: 0.1,
    maxDifferingFraction: 0.015,
    maxMeanDifference: 2,
    alphaThreshold: 128,
  },
};

export async function decodeImage(bytes: Uint8Array) {
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
    /** Height of one frame. */
    heightPx,
    frames: Array.from<unknown, Uint8Array>({ length: pages }, (_, i) =>
      data.subarray(i * frameBytes, (i + 1) * frameBytes),
    ),
    /** One per frame. */
    delaysMs: pages > 1 ? delay : undefined,
    /** 0 for infinite. */
    plays: pages > 1 ? loop : undefined,
  };
}

/** Compares size, frames, timing and pixels of two images. Returns differences, one sentence each. */
export function compareImages(
  expected: DecodedImage,
  actual: DecodedImage,
  rule: PixelRule,
): string[] {
  const differences = compareProperties(shapeOf(expected), shapeOf(actual));
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

/** Draws the differences of two frames of one size in red over a faint copy, as RGBA. */
export function drawDifference(
  expected: Uint8Array,
  actual: Uint8Array,
  { widthPx, heightPx }: DecodedImage,
): Uint8Array {
  const output = new Uint8Array(expected.length);
  pixelmatch(expected, actual, output, widthPx, heightPx, { threshold: 0.01, includeAA: true });
  return output;
}

const shapeOf = ({ widthPx, heightPx, frames, delaysMs, plays }: DecodedImage) => ({
  size: `${widthPx}x${heightPx}`,
  frames: frames.length,
  delays: delaysMs?.join(' '),
  plays,
});

type Properties = Readonly<Record<string, unknown>>;

/** Compares properties by name. @returns differences, one sentence each */
export const compareProperties = (wanted: Properties, actual: Properties): string[] =>
  Object.keys(wanted)
    .filter((name) => wanted[name] !== actual[name])
    .map((name) => `expected ${name} ${wanted[name]} but received ${actual[name]}`);

function compareExactly(expected: Uint8Array, actual: Uint8Array): string[] {
  const differences = expected.map((sample, at) => Math.abs(sample - (actual[at] ?? 0)));
  const samples = differences.filter((difference) => difference > 0);
  const largest = samples.reduce((one, other) => Math.max(one, other), 0);
  return samples.length === 0 ? [] : [`${samples.length} samples differ, by ${largest} at most`];
}

function compareFrames(
  expected: Uint8Array,
  actual: Uint8Array,
  { widthPx, heightPx }: DecodedImage,
  tolerance: (typeof tolerances)['lossy'],
): string[] {
  const pixels = widthPx * heightPx;
  const found: string[] = [];
  const reportFraction = (count: number, what: string): void => {
    if (count > pixels * tolerance.maxDifferingFraction) {
      const percent = (100 * count) / pixels;
      found.push(`${what} of ${percent.toFixed(2)} % of the pixels differs`);
    }
  };
  // Includes antialiased pixels: pixelmatch would otherwise ignore a shift by one pixel.
  const options = { threshold: tolerance.pixelThreshold, includeAA: true };
  reportFraction(pixelmatch(expected, actual, undefined, widthPx, heightPx, options), 'the colour');
  const isOtherAlpha = (sample: number, at: number): boolean =>
    at % 4 === 3 && Math.abs(sample - (actual[at] ?? 0)) >= tolerance.alphaThreshold;
  reportFraction(expected.filter(isOtherAlpha).length, 'the alpha');
  measureMeanDifferences(expected, actual).forEach((mean, channel) => {
    if (mean > tolerance.maxMeanDifference) {
      found.push(`${channelNames[channel]} differs by ${mean.toFixed(2)} levels in the mean`);
    }
  });
  return found;
}

/** Finds swapped frames, even if neighbouring frames differ by less than the tolerance. */
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

/** Returns the mean signed difference per channel, weighted by alpha: noise cancels out, a shift of all levels does not. */
function measureMeanDifferences(expected: Uint8Array, actual: Uint8Array): number[] {
  const sums = [0, 0, 0, 0];
  const weigh = (frame: Uint8Array, at: number): number =>
    (frame[at] ?? 0) * (at % 4 === 3 ? 1 : (frame[at | 3] ?? 0) / 255);
  expected.forEach((_, at) => {
    sums[at % 4] = (sums[at % 4] ?? 0) + weigh(expected, at) - weigh(actual, at);
  });
  return sums.map((sum) => Math.abs(sum) / (expected.length / 4));
}
