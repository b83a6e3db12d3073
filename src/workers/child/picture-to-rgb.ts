import type { Pixels } from './pixels.ts';

/** Picture as video codecs and HEIC code it: luma, and two chroma planes, which may be smaller. */
export interface CodedPicture {
  /** Luma, then Cb and Cr unless monochrome. */
  readonly planes: readonly Plane[];
  readonly depth: number;
  /** Matrix coefficients (ITU-T H.273 table 4); 2: unspecified. */
  readonly matrix: number;
  readonly isFullRange: boolean;
}

export interface Plane {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly samples: Uint8Array | Uint16Array;
}

/** Fractions of red and blue in luma, by matrix coefficients (ITU-T H.273 table 4); BT.601 by default. */
const LUMA_COEFFICIENTS: Readonly<Record<number, readonly [red: number, blue: number]>> = {
  1: [0.2126, 0.0722],
  4: [0.3, 0.11],
  7: [0.212, 0.087],
  9: [0.2627, 0.0593],
};
const BT_601 = [0.299, 0.114] as const;

/** Matrix coefficients of green, blue and red planes, and of luma with differences of green and orange. */
const IDENTITY = 0;
const Y_CG_CO = 8;

/** Scales luma to 0 to 255, and chroma to about -128 to 127. */
interface Scale {
  readonly lumaOffset: number;
  readonly lumaFactor: number;
  readonly chromaOffset: number;
  readonly chromaFactor: number;
}

/** Picture whose luma is alpha. */
export interface AlphaPicture extends CodedPicture {
  /** Whether colours are premultiplied by this alpha (ISO/IEC 23008-12 §6.9.1, `prem`). */
  readonly isPremultiplied?: boolean;
}

/** Maps the red, green and blue of a row in place: 0 to 255, with fractions. */
export type MapColours = (row: Float32Array) => void;

/**
 * Converts a coded picture to red, green and blue (ITU-T H.273 §8.3), and the luma of another one to alpha. Chroma at
 * half the size is interpolated as in libyuv and libjpeg: each sample is centred on its pixels.
 *
 * @param mapColours to sRGB, before rounding to 8 bits; omit for sRGB, and for pictures with a profile
 */
export function toRgb(
  picture: CodedPicture,
  alpha: AlphaPicture | undefined,
  mapColours?: MapColours,
): Pixels {
  const [luma, cb, cr] = picture.planes;
  if (luma === undefined) throw new Error('Expected a luma plane but found none');
  const { widthPx, heightPx } = luma;
  const channels = alpha === undefined ? 3 : 4;
  const samples = new Uint8ClampedArray(widthPx * heightPx * channels);
  const scale = scaleOf(picture);
  const convert = converterOf(picture, scale);
  const [cbs, crs] = [new Float32Array(widthPx), new Float32Array(widthPx)];
  const blended = new Float32Array(widthPx + 2);
  const isExact = mapColours !== undefined || alpha?.isPremultiplied === true;
  const exact = new Float32Array(isExact ? widthPx * 3 : 0);
  const opacities = new Float32Array(widthPx);
  for (let row = 0; row < heightPx; row += 1) {
    if (cb !== undefined && cr !== undefined) {
      stretchRow(cb, luma, row, blended, cbs);
      stretchRow(cr, luma, row, blended, crs);
    } else {
      cbs.fill(scale.chromaOffset);
      crs.fill(scale.chromaOffset);
    }
    const lumas = luma.samples.subarray(row * widthPx, (row + 1) * widthPx);
    const start = row * widthPx * channels;
    if (!isExact) convert(lumas, cbs, crs, samples, start, channels);
    else {
      convert(lumas, cbs, crs, exact, 0, 3);
      if (alpha?.isPremultiplied) {
        readOpacities(alpha, row, opacities);
        unmultiply(exact, opacities);
      }
      mapColours?.(exact);
      for (let from = 0, at = start; from < exact.length; from += 3, at += channels) {
        samples[at] = exact[from];
        samples[at + 1] = exact[from + 1];
        samples[at + 2] = exact[from + 2];
      }
    }
  }
  if (alpha !== undefined) addAlpha(samples, alpha);
  return { data: new Uint8Array(samples.buffer), widthPx, heightPx, channels };
}

export function scaleOf({
  depth,
  isFullRange,
}: Pick<CodedPicture, 'depth' | 'isFullRange'>): Scale {
  const unit = 2 ** (depth - 8);
  const largest = 2 ** depth - 1;
  return {
    lumaOffset: isFullRange ? 0 : 16 * unit,
    lumaFactor: 255 / (isFullRange ? largest : 219 * unit),
    chromaOffset: 128 * unit,
    chromaFactor: 255 / (isFullRange ? largest : 224 * unit),
  };
}

type Convert = (
  lumas: Uint8Array | Uint16Array,
  cbs: Float32Array,
  crs: Float32Array,
  samples: Uint8ClampedArray | Float32Array,
  start: number,
  channels: number,
) => void;

function fromYCbCr({ matrix }: CodedPicture, scale: Scale): Convert {
  const { lumaOffset, lumaFactor, chromaOffset, chromaFactor } = scale;
  const [redWeight, blueWeight] = LUMA_COEFFICIENTS[matrix] ?? BT_601;
  const greenWeight = 1 - redWeight - blueWeight;
  const redOfCr = 2 * (1 - redWeight) * chromaFactor;
  const blueOfCb = 2 * (1 - blueWeight) * chromaFactor;
  const greenOfCr = (redOfCr * redWeight) / greenWeight;
  const greenOfCb = (blueOfCb * blueWeight) / greenWeight;
  return (lumas, cbs, crs, samples, start, channels) => {
    for (let column = 0, at = start; column < lumas.length; column += 1, at += channels) {
      const luma = (lumas[column] - lumaOffset) * lumaFactor;
      const cb = cbs[column] - chromaOffset;
      const cr = crs[column] - chromaOffset;
      samples[at] = luma + cr * redOfCr;
      samples[at + 1] = luma - cr * greenOfCr - cb * greenOfCb;
      samples[at + 2] = luma + cb * blueOfCb;
    }
  };
}

function converterOf(picture: CodedPicture, scale: Scale): Convert {
  if (picture.matrix === IDENTITY) return fromIdentity(scale);
  return picture.matrix === Y_CG_CO ? fromYCgCo(scale) : fromYCbCr(picture, scale);
}

function fromYCgCo({ lumaOffset, lumaFactor, chromaOffset, chromaFactor }: Scale): Convert {
  return (lumas, cgs, cos, samples, start, channels) => {
    for (let column = 0, at = start; column < lumas.length; column += 1, at += channels) {
      const luma = (lumas[column] - lumaOffset) * lumaFactor;
      const cg = (cgs[column] - chromaOffset) * chromaFactor;
      const co = (cos[column] - chromaOffset) * chromaFactor;
      samples[at] = luma - cg + co;
      samples[at + 1] = luma + cg;
      samples[at + 2] = luma - cg - co;
    }
  };
}

function fromIdentity({ lumaOffset, lumaFactor }: Scale): Convert {
  return (greens, blues, reds, samples, start, channels) => {
    for (let column = 0, at = start; column < greens.length; column += 1, at += channels) {
      samples[at] = (reds[column] - lumaOffset) * lumaFactor;
      samples[at + 1] = (greens[column] - lumaOffset) * lumaFactor;
      samples[at + 2] = (blues[column] - lumaOffset) * lumaFactor;
    }
  };
}

/** Stretches chroma to the size of luma: three parts nearest sample, one part neighbour. @param blended buffer */
function stretchRow(
  plane: Plane,
  luma: Plane,
  row: number,
  blended: Float32Array,
  out: Float32Array,
): void {
  const { widthPx, heightPx, samples } = plane;
  const isHigh = heightPx === luma.heightPx;
  const near = isHigh ? row : row >> 1;
  const adjacent = isHigh ? near : near + (row % 2 === 0 ? -1 : 1);
  const far = Math.min(Math.max(adjacent, 0), heightPx - 1);
  const [nearAt, farAt] = [near * widthPx, far * widthPx];
  for (let column = 0; column < widthPx; column += 1) {
    const value = samples[nearAt + column];
    blended[column] = value + (samples[farAt + column] - value) / 4;
  }
  if (widthPx === luma.widthPx) {
    out.set(blended.subarray(0, widthPx));
    return;
  }
  for (let column = 0; column < out.length; column += 1) {
    const at = column >> 1;
    const next = Math.min(Math.max(at + (column % 2 === 0 ? -1 : 1), 0), widthPx - 1);
    const value = blended[at];
    out[column] = value + (blended[next] - value) / 4;
  }
}

/** Adds the luma of a picture of the same size as alpha. */
function addAlpha(samples: Uint8ClampedArray, alpha: CodedPicture): void {
  const [luma] = alpha.planes;
  if (luma === undefined) return;
  const { lumaOffset, lumaFactor } = scaleOf(alpha);
  for (let pixel = 0, at = 3; at < samples.length; pixel += 1, at += 4) {
    samples[at] = (luma.samples[pixel] - lumaOffset) * lumaFactor;
  }
}

function readOpacities(alpha: CodedPicture, row: number, opacities: Float32Array): void {
  const samples = alpha.planes[0]?.samples ?? [];
  const { lumaOffset, lumaFactor } = scaleOf(alpha);
  for (
    let column = 0, at = row * opacities.length;
    column < opacities.length;
    column += 1, at += 1
  ) {
    opacities[column] = (samples[at] - lumaOffset) * lumaFactor;
  }
}

/** Divides the colours of a row by their opacities, 0 to 255. Invisible colours stay unchanged. */
export function unmultiply(row: Float32Array, opacities: Float32Array): void {
  for (let at = 0, pixel = 0; at < row.length; at += 3, pixel += 1) {
    const opacity = opacities[pixel];
    if (opacity <= 0 || opacity >= 255) continue;
    const factor = 255 / opacity;
    for (let channel = at; channel < at + 3; channel += 1) {
      row[channel] = Math.min(255, row[channel] * factor);
    }
  }
}
