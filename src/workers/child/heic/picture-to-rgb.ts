import type { CodedPicture, Plane } from './decode-hevc.ts';

/** Pixels as they lie in memory, 8 bits a sample. */
export interface RgbPixels {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly channels: 3 | 4;
  readonly samples: Uint8ClampedArray;
}

/** Shares of red and blue in light, by matrix coefficients (ITU-T H.273 table 4); else those of BT.601. */
const SHARES: Readonly<Record<number, readonly [red: number, blue: number]>> = {
  1: [0.2126, 0.0722],
  4: [0.3, 0.11],
  7: [0.212, 0.087],
  9: [0.2627, 0.0593],
};
const BT_601 = [0.299, 0.114] as const;

/** The planes are green, blue and red themselves. */
const IDENTITY = 0;

/** How samples of a depth become numbers from 0 to 255, and those of colour from about -128 to 127. */
interface Scale {
  readonly lightOffset: number;
  readonly lightFactor: number;
  readonly colourOffset: number;
  readonly colourFactor: number;
}

/**
 * Makes red, green and blue of a coded picture (ITU-T H.273 §8.3), and of the light of another one how opaque it
 * is. Colours that are coded at half the size are interpolated, as libyuv and libjpeg do it: each lies in the
 * middle of its pixels.
 */
export function toRgb(picture: CodedPicture, alpha: CodedPicture | undefined): RgbPixels {
  const [light, blue, red] = picture.planes;
  if (light === undefined) throw new Error('Expected a plane of light but found none');
  const { widthPx, heightPx } = light;
  const channels = alpha === undefined ? 3 : 4;
  const samples = new Uint8ClampedArray(widthPx * heightPx * channels);
  const scale = scaleOf(picture);
  const convert = picture.matrix === IDENTITY ? fromIdentity(scale) : fromColour(picture, scale);
  const [blues, reds] = [new Float32Array(widthPx), new Float32Array(widthPx)];
  const blended = new Float32Array(widthPx + 2);
  for (let row = 0; row < heightPx; row += 1) {
    if (blue !== undefined && red !== undefined) {
      stretchRow(blue, light, row, blended, blues);
      stretchRow(red, light, row, blended, reds);
    } else {
      blues.fill(scale.colourOffset);
      reds.fill(scale.colourOffset);
    }
    const lights = light.samples.subarray(row * widthPx, (row + 1) * widthPx);
    convert(lights, blues, reds, samples, row * widthPx * channels, channels);
  }
  if (alpha !== undefined) addAlpha(samples, alpha);
  return { widthPx, heightPx, channels, samples };
}

function scaleOf({ depth, isFullRange }: CodedPicture): Scale {
  const unit = 2 ** (depth - 8);
  const largest = 2 ** depth - 1;
  return {
    lightOffset: isFullRange ? 0 : 16 * unit,
    lightFactor: 255 / (isFullRange ? largest : 219 * unit),
    colourOffset: 128 * unit,
    colourFactor: 255 / (isFullRange ? largest : 224 * unit),
  };
}

type Convert = (
  lights: Uint8Array | Uint16Array,
  blues: Float32Array,
  reds: Float32Array,
  samples: Uint8ClampedArray,
  start: number,
  channels: number,
) => void;

function fromColour({ matrix }: CodedPicture, scale: Scale): Convert {
  const { lightOffset, lightFactor, colourOffset, colourFactor } = scale;
  const [redShare, blueShare] = SHARES[matrix] ?? BT_601;
  const greenShare = 1 - redShare - blueShare;
  const redOfRed = 2 * (1 - redShare) * colourFactor;
  const blueOfBlue = 2 * (1 - blueShare) * colourFactor;
  const greenOfRed = (redOfRed * redShare) / greenShare;
  const greenOfBlue = (blueOfBlue * blueShare) / greenShare;
  return (lights, blues, reds, samples, start, channels) => {
    for (let column = 0, at = start; column < lights.length; column += 1, at += channels) {
      const light = ((lights[column] ?? 0) - lightOffset) * lightFactor;
      const blue = (blues[column] ?? 0) - colourOffset;
      const red = (reds[column] ?? 0) - colourOffset;
      samples[at] = light + red * redOfRed;
      samples[at + 1] = light - red * greenOfRed - blue * greenOfBlue;
      samples[at + 2] = light + blue * blueOfBlue;
    }
  };
}

function fromIdentity({ lightOffset, lightFactor }: Scale): Convert {
  return (greens, blues, reds, samples, start, channels) => {
    for (let column = 0, at = start; column < greens.length; column += 1, at += channels) {
      samples[at] = ((reds[column] ?? 0) - lightOffset) * lightFactor;
      samples[at + 1] = ((greens[column] ?? 0) - lightOffset) * lightFactor;
      samples[at + 2] = ((blues[column] ?? 0) - lightOffset) * lightFactor;
    }
  };
}

/**
 * A row of colour at the size of light: three parts of the nearest sample and one of its neighbour, in either
 * direction that is coded at half the size.
 *
 * @param blended room for the row between its two steps
 */
function stretchRow(
  plane: Plane,
  light: Plane,
  row: number,
  blended: Float32Array,
  out: Float32Array,
): void {
  const { widthPx, heightPx, samples } = plane;
  const isHigh = heightPx === light.heightPx;
  const near = isHigh ? row : row >> 1;
  const beside = isHigh ? near : near + (row % 2 === 0 ? -1 : 1);
  const far = Math.min(Math.max(beside, 0), heightPx - 1);
  const [nearAt, farAt] = [near * widthPx, far * widthPx];
  for (let column = 0; column < widthPx; column += 1) {
    const value = samples[nearAt + column] ?? 0;
    blended[column] = value + ((samples[farAt + column] ?? 0) - value) / 4;
  }
  if (widthPx === light.widthPx) {
    out.set(blended.subarray(0, widthPx));
    return;
  }
  for (let column = 0; column < out.length; column += 1) {
    const at = column >> 1;
    const next = Math.min(Math.max(at + (column % 2 === 0 ? -1 : 1), 0), widthPx - 1);
    const value = blended[at] ?? 0;
    out[column] = value + ((blended[next] ?? 0) - value) / 4;
  }
}

/** Puts the light of a picture of the same size beside colours. */
function addAlpha(samples: Uint8ClampedArray, alpha: CodedPicture): void {
  const [light] = alpha.planes;
  if (light === undefined) return;
  const { lightOffset, lightFactor } = scaleOf(alpha);
  for (let pixel = 0, at = 3; at < samples.length; pixel += 1, at += 4) {
    samples[at] = ((light.samples[pixel] ?? 0) - lightOffset) * lightFactor;
  }
}

/** Divides colours by the alpha that they were multiplied with (ISO/IEC 23008-12 §6.9.1, `prem`). */
export function unmultiply({ samples, channels }: RgbPixels): void {
  if (channels !== 4) return;
  for (let at = 0; at < samples.length; at += 4) {
    const alpha = samples[at + 3] ?? 255;
    if (alpha === 0 || alpha === 255) continue;
    for (let channel = at; channel < at + 3; channel += 1) {
      samples[channel] = ((samples[channel] ?? 0) * 255) / alpha;
    }
  }
}
