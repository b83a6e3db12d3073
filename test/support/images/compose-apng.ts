import type { DrawnApng, DrawnApngFrame, SampleKind } from './draw-apng.ts';

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

const transparentBlack: Pixel = [0, 0, 0, 0];

/**
 * What the frames of a drawing must show, worked out pixel by pixel from the drawing itself, by PNG 3rd
 * edition §4.9 and §13.16: slow, and with none of the code under test.
 *
 * @returns 8-bit RGBA of each frame
 */
export function composeApng(drawn: DrawnApng): Uint8Array[] {
  const { widthPx, heightPx, frames, kind = { colour: 'rgba', bits: 8 } } = drawn;
  const places = Array.from({ length: widthPx * heightPx }, (_, at) => ({
    x: at % widthPx,
    y: Math.floor(at / widthPx),
  }));
  let canvas: Pixel[] = places.map(() => transparentBlack);
  return frames.map((frame) => {
    const { left = 0, top = 0, dispose = 'none', blend = 'source' } = frame;
    const isWithin = ({ x, y }: { readonly x: number; readonly y: number }): boolean =>
      x >= left &&
      y >= top &&
      x < left + (frame.widthPx ?? widthPx) &&
      y < top + (frame.heightPx ?? heightPx);
    const shown = canvas.map((below, at) => {
      const place = places[at] ?? { x: 0, y: 0 };
      if (!isWithin(place)) return below;
      const pixel = pixelOf(frame, place.x - left, place.y - top, kind);
      return blend === 'source' ? pixel : over(pixel, below);
    });
    const before = canvas;
    canvas = shown.map((pixel, at) => {
      if (dispose === 'none' || !isWithin(places[at] ?? { x: 0, y: 0 })) return pixel;
      return dispose === 'previous' ? (before[at] ?? pixel) : transparentBlack;
    });
    return Uint8Array.from(shown.flat());
  });
}

/** One picture of a drawing, such as its default image. */
export function composeStill(drawn: DrawnApng): Uint8Array {
  const draw = drawn.still ?? drawn.frames[0]?.draw;
  if (draw === undefined) throw new Error('Expected a picture but found none');
  return composeApng({ ...drawn, frames: [{ draw }] })[0] ?? new Uint8Array();
}

/** Samples to 8-bit RGBA (PNG 3rd edition §13.12): 16 bits lose their lower half. */
function pixelOf({ draw }: DrawnApngFrame, x: number, y: number, kind: SampleKind): Pixel {
  const { colour, bits, palette = [], transparent } = kind;
  const samples = draw(x, y);
  const to8 = (sample = 0): number =>
    bits === 16 ? sample >> 8 : Math.round((sample * 255) / (2 ** bits - 1));
  const [first = 0, second, third, fourth] = samples;
  // Of colours without alpha, tRNS names one in 16-bit numbers that is transparent.
  const isNamed =
    transparent !== undefined &&
    samples.every(
      (sample, at) => sample === (transparent[2 * at] ?? 0) * 256 + (transparent[2 * at + 1] ?? 0),
    );
  const keyed = isNamed ? 0 : 255;
  switch (colour) {
    case 'palette':
      return [...(palette[first] ?? [0, 0, 0]), transparent?.[first] ?? 255];
    case 'grey':
      return [to8(first), to8(first), to8(first), keyed];
    case 'grey alpha':
      return [to8(first), to8(first), to8(first), to8(second)];
    case 'rgb':
      return [to8(first), to8(second), to8(third), keyed];
    case 'rgba':
      return [to8(first), to8(second), to8(third), to8(fourth)];
  }
}

/** In whole numbers: everything times 255 · 255, each quotient rounded half up. */
function over(pixel: Pixel, below: Pixel): Pixel {
  const [, , , alpha] = pixel;
  const [, , , alphaBelow] = below;
  if (alpha === 0) return below;
  const sum = 255n * BigInt(alpha) + BigInt(alphaBelow) * BigInt(255 - alpha);
  const mix = (at: 0 | 1 | 2): number => {
    const above = 255n * BigInt(alpha) * BigInt(pixel[at]);
    const rest = BigInt(alphaBelow) * BigInt(255 - alpha) * BigInt(below[at]);
    return divide(above + rest, sum);
  };
  return [mix(0), mix(1), mix(2), divide(sum, 255n)];
}

function divide(numerator: bigint, denominator: bigint): number {
  return Number((2n * numerator + denominator) / (2n * denominator));
}
