import type { CodePoints } from '../../../formats/image-header.ts';
import { tabulate, toIndex, toSrgb } from '../lookup-table.ts';
import type { MapColours } from '../picture-to-rgb.ts';

const BT_2020 = 9;
const DISPLAY_P3 = 12;

/** Matrices from linear BT.2020 and Display P3 to linear sRGB (ITU-R BT.2087; SMPTE EG 432-1). */
const TO_SRGB_LIGHT: Readonly<Record<number, readonly number[]>> = {
  [BT_2020]: [1.6605, -0.5876, -0.0728, -0.1246, 1.1329, -0.0083, -0.0182, -0.1006, 1.1187],
  [DISPLAY_P3]: [1.2249, -0.2247, 0, -0.0421, 1.0419, 0, -0.0196, -0.0786, 1.0979],
};

const UNSPECIFIED = 2;

const PQ = 16;
const HLG = 18;

/** Light of a sample by transfer characteristics (ITU-T H.273 table 3); all others count as sRGB (contract §12). */
const TO_LIGHT: Readonly<Record<number, (sample: number) => number>> = {
  4: (sample) => sample ** 2.2,
  5: (sample) => sample ** 2.8,
  8: (sample) => sample,
  [PQ]: fromPq,
  [HLG]: fromHlg,
};

/** Luminance of white, of HLG's display, and PQ's maximum, in cd/m² (ITU-R BT.2408, BT.2100). */
const WHITE_NITS = 203;
const HLG_NITS = 1_000;
const PQ_NITS = 10_000;

/** Exponent of HLG's display at 1000 cd/m² less 1, and the primaries' fractions of luminance (BT.2100 table 5). */
const HLG_GAMMA_LESS_1 = 0.2;
const BT_2020_LUMINANCE = [0.2627, 0.678, 0.0593] as const;

/** Light from which it is rolled off towards white (contract §12). */
const KNEE = 0.9;
/** Light above the knee. The brightest channel approaches white, and the others follow, to preserve hues. */
const HEADROOM = 1 - KNEE;

const SAMPLE_STEPS = 4096;
const LIGHT_STEPS = 16_384;

/** The last map, cached for the frames of an animation: its tables take about 5 ms. */
let latest: (CodePoints & { readonly map: MapColours | undefined }) | undefined;

/** Returns the map to sRGB, if needed (contract §12). Unspecified primaries of PQ and HLG count as BT.2020. */
export function mapToSrgb({ primaries, transfer }: CodePoints): MapColours | undefined {
  if (latest?.primaries !== primaries || latest.transfer !== transfer) {
    latest = { primaries, transfer, map: createMap({ primaries, transfer }) };
  }
  return latest.map;
}

function createMap({ primaries, transfer }: CodePoints): MapColours | undefined {
  const isHlg = transfer === HLG;
  const isBright = isHlg || transfer === PQ;
  const matrix = TO_SRGB_LIGHT[primaries === UNSPECIFIED && isBright ? BT_2020 : primaries];
  const toLight = TO_LIGHT[transfer];
  if (matrix === undefined && toLight === undefined) return undefined;
  const lights = Float32Array.from(tabulate(toLight ?? fromSrgb, SAMPLE_STEPS));
  const samples = Float32Array.from(tabulate((light) => 255 * toSrgb(light), LIGHT_STEPS));
  const gains = Float32Array.from(tabulate(isHlg ? hlgGain : () => 1, LIGHT_STEPS));
  const [rr = 1, rg = 0, rb = 0, gr = 0, gg = 1, gb = 0, br = 0, bg = 0, bb = 1] = matrix ?? [];
  const [redWeight, greenWeight, blueWeight] = BT_2020_LUMINANCE;
  const sampleScale = SAMPLE_STEPS / 255;
  return (row) => {
    for (let at = 0; at < row.length; at += 3) {
      const red = lights[toIndex(row[at] * sampleScale, SAMPLE_STEPS)];
      const green = lights[toIndex(row[at + 1] * sampleScale, SAMPLE_STEPS)];
      const blue = lights[toIndex(row[at + 2] * sampleScale, SAMPLE_STEPS)];
      const scene = redWeight * red + greenWeight * green + blueWeight * blue;
      const gain = gains[toIndex(scene * LIGHT_STEPS, LIGHT_STEPS)];
      const r = (rr * red + rg * green + rb * blue) * gain;
      const g = (gr * red + gg * green + gb * blue) * gain;
      const b = (br * red + bg * green + bb * blue) * gain;
      const brightest = r > g ? (r > b ? r : b) : g > b ? g : b;
      const scale =
        isBright && brightest > KNEE
          ? (LIGHT_STEPS * (1 - HEADROOM ** 2 / (HEADROOM + brightest - KNEE))) / brightest
          : LIGHT_STEPS;
      row[at] = samples[toIndex(r * scale, LIGHT_STEPS)];
      row[at + 1] = samples[toIndex(g * scale, LIGHT_STEPS)];
      row[at + 2] = samples[toIndex(b * scale, LIGHT_STEPS)];
    }
  };
}

/** Inverse of sRGB's curve (IEC 61966-2-1), also used for those of BT.709 and BT.2020. */
function fromSrgb(sample: number): number {
  return sample <= 0.04045 ? sample / 12.92 : ((sample + 0.055) / 1.055) ** 2.4;
}

/** Returns display light relative to white, from a PQ sample (SMPTE ST 2084). */
function fromPq(sample: number): number {
  const root = sample ** (32 / 2523);
  const light = Math.max(0, root - 107 / 128) / (2413 / 128 - (2392 / 128) * root);
  return (light ** (8192 / 1305) * PQ_NITS) / WHITE_NITS;
}

/** Returns scene light, 0 to 1, from an HLG sample (ITU-R BT.2100 table 5). */
function fromHlg(sample: number): number {
  const [a, b, c] = [0.17883277, 0.28466892, 0.55991073];
  return sample <= 0.5 ? sample ** 2 / 3 : (Math.exp((sample - c) / a) + b) / 12;
}

/** Returns the factor from scene light of a luminance, 0 to 1, to display light relative to white (BT.2100 table 5). */
function hlgGain(scene: number): number {
  return (HLG_NITS / WHITE_NITS) * scene ** HLG_GAMMA_LESS_1;
}
