import { toSrgb } from '../colour-conversion.ts';
import type { MapColours } from '../picture-to-rgb.ts';

/** Colour of a video as WebCodecs names its parts; `undefined` where nothing tells. */
export interface VideoColour {
  readonly primaries: string | undefined;
  readonly transfer: string | undefined;
}

/** From linear BT.2020, and from linear Display P3, to linear sRGB (ITU-R BT.2087; SMPTE EG 432-1). */
const TO_SRGB_LIGHT: Readonly<Record<string, readonly number[]>> = {
  bt2020: [1.6605, -0.5876, -0.0728, -0.1246, 1.1329, -0.0083, -0.0182, -0.1006, 1.1187],
  smpte432: [1.2249, -0.2247, 0, -0.0421, 1.0419, 0, -0.0196, -0.0786, 1.0979],
};
const BT_2020 = 'bt2020';

/** Luminance of white, of the display of HLG, and the greatest of PQ, in cd/m² (ITU-R BT.2408, BT.2100). */
const WHITE_NITS = 203;
const HLG_NITS = 1_000;
const PQ_NITS = 10_000;

/** Exponent of HLG's display at 1000 cd/m² less 1, and the shares of the primaries in luminance (BT.2100 table 5). */
const HLG_GAMMA_LESS_1 = 0.2;
const BT_2020_SHARES = [0.2627, 0.678, 0.0593] as const;

/** Light up to which it is kept; above it is rolled off towards white (contract §12). */
const KNEE = 0.9;

/** Steps of the tables: of samples and of light. */
const SAMPLE_STEPS = 4096;
const LIGHT_STEPS = 65_536;

/** Returns how colours are mapped to sRGB; `undefined` if they count as sRGB (contract §12). */
export function mapToSrgb({ primaries, transfer }: VideoColour): MapColours | undefined {
  const isHlg = transfer === 'hlg';
  const isBright = isHlg || transfer === 'pq';
  const matrix = TO_SRGB_LIGHT[primaries ?? (isBright ? BT_2020 : '')];
  if (matrix === undefined && !isBright) return undefined;
  const toLight = isHlg ? fromHlg : transfer === 'pq' ? fromPq : fromSrgb;
  const lights = tabulate(toLight, SAMPLE_STEPS);
  const samples = tabulate((light) => 255 * toSrgb(light), LIGHT_STEPS);
  const [rr = 1, rg = 0, rb = 0, gr = 0, gg = 1, gb = 0, br = 0, bg = 0, bb = 1] = matrix ?? [];
  const lightOf = (sample: number): number =>
    lights[Math.round((clamp(sample / 255) || 0) * SAMPLE_STEPS)] ?? 0;
  const sampleOf = (light: number): number => samples[Math.round(clamp(light) * LIGHT_STEPS)] ?? 0;
  const [redShare, greenShare, blueShare] = BT_2020_SHARES;
  return (row) => {
    for (let at = 0; at < row.length; at += 3) {
      let red = lightOf(row[at] ?? 0);
      let green = lightOf(row[at + 1] ?? 0);
      let blue = lightOf(row[at + 2] ?? 0);
      if (isHlg) {
        const scene = redShare * red + greenShare * green + blueShare * blue;
        const gain = (HLG_NITS / WHITE_NITS) * scene ** HLG_GAMMA_LESS_1;
        red *= gain;
        green *= gain;
        blue *= gain;
      }
      const r = rr * red + rg * green + rb * blue;
      const g = gr * red + gg * green + gb * blue;
      const b = br * red + bg * green + bb * blue;
      const scale = isBright ? rollOff(Math.max(r, g, b)) : 1;
      row[at] = sampleOf(r * scale);
      row[at + 1] = sampleOf(g * scale);
      row[at + 2] = sampleOf(b * scale);
    }
  };
}

/** Returns the factor that brings the brightest channel of a pixel below white, so that its hue stays. */
function rollOff(brightest: number): number {
  if (brightest <= KNEE) return 1;
  const room = 1 - KNEE;
  return (1 - room ** 2 / (room + brightest - KNEE)) / brightest;
}

/** Inverse of sRGB's curve (IEC 61966-2-1), for which those of BT.709 and BT.2020 count. */
function fromSrgb(sample: number): number {
  return sample <= 0.04045 ? sample / 12.92 : ((sample + 0.055) / 1.055) ** 2.4;
}

/** Light of the display relative to white, from a sample of PQ (SMPTE ST 2084). */
function fromPq(sample: number): number {
  const root = sample ** (32 / 2523);
  const light = Math.max(0, root - 107 / 128) / (2413 / 128 - (2392 / 128) * root);
  return (light ** (8192 / 1305) * PQ_NITS) / WHITE_NITS;
}

/** Light of the scene, 0 to 1, from a sample of HLG (ITU-R BT.2100 table 5). */
function fromHlg(sample: number): number {
  const [a, b, c] = [0.17883277, 0.28466892, 0.55991073];
  return sample <= 0.5 ? sample ** 2 / 3 : (Math.exp((sample - c) / a) + b) / 12;
}

function tabulate(compute: (share: number) => number, steps: number): Float64Array {
  return Float64Array.from({ length: steps + 1 }, (_, step) => compute(step / steps));
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
