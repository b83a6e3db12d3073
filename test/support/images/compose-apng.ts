import type { DrawnApng, SampleKind } from './draw-apng.ts';

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
  let canvas = Array.from({ length: widthPx * heightPx }, () => transparentBlack);
  return frames.map(({ draw, dispose, blend, ...frame }) => {
    const { left = 0, top = 0, widthPx: width = widthPx, heightPx: height = heightPx } = frame;
    const before = canvas;
    const shown = [...canvas];
    canvas = [...canvas];
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const at = (top + y) * widthPx + left + x;
        const below = before[at] ?? transparentBlack;
        const pixel = toRgba(draw(x, y), kind);
        shown[at] = blend === 'over' ? over(pixel, below) : pixel;
        const disposed = dispose === 'previous' ? below : transparentBlack;
        canvas[at] = (dispose ?? 'none') === 'none' ? shown[at] : disposed;
      }
    }
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
function toRgba(samples: readonly number[], kind: SampleKind): Pixel {
  const { colour, bits, palette = [], transparent } = kind;
  const [first = 0] = samples;
  if (colour === 'palette') return [...(palette[first] ?? [0, 0, 0]), transparent?.[first] ?? 255];
  const levels = samples.map((sample) =>
    bits === 16 ? sample >> 8 : Math.round((sample * 255) / (2 ** bits - 1)),
  );
  // Of colours without alpha, tRNS names one in 16-bit numbers that is transparent.
  const isNamed =
    transparent !== undefined &&
    samples.every(
      (sample, at) => sample === (transparent[2 * at] ?? 0) * 256 + (transparent[2 * at + 1] ?? 0),
    );
  const alpha = /a$|alpha/.test(colour) ? levels.pop() : undefined;
  const [red = 0, green = red, blue = red] = levels;
  return [red, green, blue, alpha ?? (isNamed ? 0 : 255)];
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
