import type { Pixels } from '../pixels.ts';

/**
 * Size of the sample of a still, and least length of its runs, which begin at offsets spread over the width, so that no
 * column is left out.
 */
const SAMPLE_PIXELS = 1024;
const RUN_PIXELS = 32;
const SPREAD = 0.618034;

/** Difference of neighbours, as a mean of the channels, from which there is an edge. */
const EDGE = 48;

/** Mean difference of red and blue from green from which a picture is coloured. */
const COLOURED = 8;

/**
 * Lines that are fitted to the logarithm of lossless by lossy bytes, for the two lossy qualities: least squares over
 * 2 200 renderings of 297 originals of the corpus and the samples at 16 to 128 px. With all renderings of the same
 * picture left out of the fit, they explain 0.82 and 0.87 of the variance; at 200 to 1 024 px, which no fit has seen,
 * 0.53 and 0.63 (bench/RESULTS.md).
 */
const FITS = {
  high: {
    base: 0.19,
    residue: 0.68,
    pixels: 0.1,
    change: -0.19,
    edges: -0.72,
    clear: -0.94,
    translucent: -0.76,
  },
  low: {
    base: 0.03,
    residue: 0.81,
    pixels: 0.16,
    change: -0.17,
    edges: -1.03,
    clear: -1.33,
    translucent: -1.15,
  },
} as const;

/** Ratios of lossless to lossy bytes up to which a still is a drawing, and from which it is a photograph. */
const SURELY_SMALLER = 0.93;
const SURELY_LARGER = 1.07;

/** Ratio and colours up to which a palette may still be smaller; with the fewest colours, it may be at any ratio. */
const LARGER_THAN_PALETTE = 3;
const PALETTE_COLOURS = 100;
const FEWEST_COLOURS = 64;

/** Most colours of a pattern that predictors do not foresee, as a number and as a share of its pixels. */
const PATTERN_COLOURS = 256;
const PATTERN_SHARE = 0.3;

/**
 * Shares of pixels that are unlike both neighbours: from the first a pattern; up to the others the flat areas of drawings,
 * and stripes, which may be smaller without loss at any ratio.
 */
const PATTERN_UNLIKE = 0.9;
const GRADIENT_UNLIKE = 0.5;
const FLAT_UNLIKE = 0.92;
const STRIPED_UNLIKE = 0.06;
const CUT_OUT_UNLIKE = 0.94;

/** Share of transparent and translucent pixels from which a picture is cut out. */
const CUT_OUT = 0.05;

/** Shorter edge of a still that is mostly padding in the lossy form, whose blocks have 16 px. */
const THIN_PX = 8;

/** Bits of residue per pixel up to which predictors foresee a whole gradient. */
const GRADIENT_RESIDUE = 0.55;

/** The logarithms of a difference and one. */
const LOGARITHMS = Float64Array.from({ length: 512 }, (_, difference) => Math.log2(1 + difference));

/** Facts of a still's sampled pixels; shares are of these. */
export interface StillSample {
  /** Bits per pixel that remain after prediction from its neighbours. */
  readonly residueBits: number;
  /** Logarithm of the difference from left and above. */
  readonly change: number;
  readonly unlike: number;
  readonly edges: number;
  readonly clear: number;
  readonly translucent: number;
  readonly isColoured: boolean;
  /** Distinct colours and alphas. */
  readonly colours: number;
  readonly pixels: number;
  readonly isThin: boolean;
}

/** Form in which a still is encoded; `both` where the estimate is unsure, and bytes decide. */
export type StillForm = 'lossless' | 'lossy' | 'both';

/** Estimates the ratio of a still's lossless bytes to its lossy ones. */
export function estimateRatio(
  sample: StillSample,
  { widthPx, heightPx }: Pixels,
  quality: keyof typeof FITS,
): number {
  const fit = FITS[quality];
  return Math.exp(
    fit.base +
      fit.residue * Math.log(0.1 + sample.residueBits) +
      fit.pixels * Math.log2(widthPx * heightPx) +
      fit.change * sample.change +
      fit.edges * sample.edges +
      fit.clear * sample.clear +
      fit.translucent * sample.translucent,
  );
}

/** @param ratio estimated, by the ratio at which lossless is worth its bytes */
export function chooseForm(sample: StillSample, ratio: number): StillForm {
  const { colours, unlike } = sample;
  if (sample.isThin) return 'both';
  if (ratio <= SURELY_SMALLER) return 'lossless';
  if (unlike > GRADIENT_UNLIKE && sample.residueBits <= GRADIENT_RESIDUE) return 'both';
  const isPattern =
    unlike > PATTERN_UNLIKE && colours <= Math.min(PATTERN_COLOURS, PATTERN_SHARE * sample.pixels);
  const mayBePalette =
    colours <= FEWEST_COLOURS ||
    unlike <= STRIPED_UNLIKE ||
    (ratio < LARGER_THAN_PALETTE && (colours <= PALETTE_COLOURS || isPattern));
  return ratio < SURELY_LARGER || mayBePalette ? 'both' : 'lossy';
}

/** Kinds of pictures by what chroma of half the resolution does to them: it smears the edges of coloured drawings. */
export type Smear = 'cut-out' | 'drawing' | 'none';

/** Classifies a picture: drawings in colour have flat areas; drawings that are cut out, such as emojis, more surely. */
export function smearOf({ isColoured, unlike, clear, translucent }: StillSample): Smear {
  if (!isColoured) return 'none';
  if (clear + translucent > CUT_OUT && unlike <= CUT_OUT_UNLIKE) return 'cut-out';
  return unlike <= FLAT_UNLIKE ? 'drawing' : 'none';
}

/** Samples a still, in a tenth of a millisecond. */
export function sampleStill({ data, widthPx, heightPx, channels }: Pixels): StillSample {
  const run = Math.min(widthPx, Math.max(RUN_PIXELS, Math.floor(SAMPLE_PIXELS / heightPx)));
  const rows = Math.min(heightPx, Math.floor(SAMPLE_PIXELS / run));
  const rowBytes = widthPx * channels;
  const hasAlpha = channels === 2 || channels === 4;
  const isRgb = channels >= 3;
  const distinct = new Set<number>();
  let [unlike, residueBits, change, edges, chroma, clear, translucent] = [0, 0, 0, 0, 0, 0, 0];
  for (let each = 0; each < rows; each += 1) {
    const y = Math.floor(((each + 0.5) * heightPx) / rows);
    const first = Math.floor(((each * SPREAD) % 1) * (widthPx - run + 1));
    for (let x = first; x < first + run; x += 1) {
      const at = y * rowBytes + x * channels;
      // Without a neighbour on one side, the other one replaces it.
      const above = y > 0 ? at - rowBytes : x > 0 ? at - channels : at;
      const left = x > 0 ? at - channels : above;
      const corner = x > 0 && y > 0 ? above - channels : above;
      let [isLikeLeft, isLikeAbove] = [true, true];
      let [difference, bits, ofGreen, word] = [0, 0, 0, 0];
      for (let turn = 0; turn < channels; turn += 1) {
        // Green first: red and blue are predicted from it.
        const channel = isRgb && turn < 2 ? 1 - turn : turn;
        const sample = data[at + channel] ?? 0;
        const one = data[left + channel] ?? 0;
        const two = data[above + channel] ?? 0;
        const slope = one + two - (data[corner + channel] ?? 0);
        let residue = sample - (slope < 0 ? 0 : slope > 255 ? 255 : slope);
        if (isRgb && turn === 0) ofGreen = residue;
        else if (isRgb && channel !== 3) residue -= ofGreen;
        isLikeLeft &&= sample === one;
        isLikeAbove &&= sample === two;
        difference += Math.abs(sample - one) + Math.abs(sample - two);
        bits += LOGARITHMS[Math.abs(residue)] ?? 0;
        word = word * 256 + sample;
      }
      if (!isLikeLeft && !isLikeAbove) {
        unlike += 1;
        residueBits += bits;
      }
      change += difference / channels;
      if (difference > EDGE * channels) edges += 1;
      if (distinct.size <= PATTERN_COLOURS) distinct.add(word);
      if (isRgb) {
        const green = data[at + 1] ?? 0;
        chroma += Math.abs((data[at] ?? 0) - green) + Math.abs((data[at + 2] ?? 0) - green);
      }
      const alpha = hasAlpha ? data[at + channels - 1] : 255;
      if (alpha === 0) clear += 1;
      else if (alpha !== 255) translucent += 1;
    }
  }
  const pixels = rows * run;
  return {
    residueBits: residueBits / pixels,
    change: Math.log2(1 + change / pixels),
    unlike: unlike / pixels,
    edges: edges / pixels,
    clear: clear / pixels,
    translucent: translucent / pixels,
    isColoured: chroma / pixels > COLOURED,
    colours: distinct.size,
    pixels,
    isThin: Math.min(widthPx, heightPx) < THIN_PX,
  };
}
