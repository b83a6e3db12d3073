import fc from 'fast-check';
import sharp, { type WebpOptions } from 'sharp';
import { describe, expect, test } from 'vitest';
import {
  createTransparentVp8l,
  replacesCanvas,
  restoreAnimation,
  SENTINEL_DELAY_MS,
} from '../../../src/formats/webp/webp-animation.ts';
import { decodeImage } from '../../support/images/image-comparison.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

type Size = Record<'width' | 'height', number>;

const PALETTE = [
  [0, 0, 0, 0],
  [255, 0, 0, 255],
  [0, 200, 0, 255],
  [0, 0, 255, 255],
  [90, 180, 30, 128],
] as const;

function draw({ width, height }: Size, pixelAt: (x: number, y: number) => Pixel): Buffer {
  const places = [...Array(width * height).keys()];
  return Buffer.from(places.flatMap((at) => pixelAt(at % width, Math.floor(at / width))));
}

/** An opaque picture with enough detail to show losses. */
const gradient = (size: Size, seed: number): Buffer =>
  draw(size, (x, y) => [(x * 9 + seed * 70) & 255, (y * 11) & 255, (seed * 90) & 255, 255]);

function encode(
  frames: readonly Buffer[],
  { width, height }: Size,
  options: WebpOptions,
  channels: 3 | 4 = 4,
): Promise<Buffer> {
  const strip = sharp(Buffer.concat(frames), {
    raw: { width, height: height * frames.length, channels: 4, pageHeight: height },
  });
  const delay = frames.map(() => SENTINEL_DELAY_MS);
  return (channels === 3 ? strip.removeAlpha() : strip).webp({ ...options, delay }).toBuffer();
}

/** Chunks of a file, read without the code under test; those of frames follow their frame. */
function list(file: Buffer, from = 12, to = file.length): { name: string; at: number }[] {
  if (from >= to) return [];
  const [name, bytes] = [file.toString('latin1', from, from + 4), file.readUInt32LE(from + 4)];
  const end = from + 8 + bytes;
  const inner = name === 'ANMF' ? list(file, from + 8 + 16, end) : [];
  return [{ name, at: from + 8 }, ...inner, ...list(file, end + (bytes % 2), to)];
}

const find = (file: Buffer, name: string): number =>
  list(file).find((chunk) => chunk.name === name)?.at ?? Number.NaN;

/** Whether any frame has alpha, by its `ALPH` or the bit in its `VP8L`. */
const hasAlpha = (file: Buffer): boolean =>
  list(file).some(
    ({ name, at }) =>
      name === 'ALPH' || (name === 'VP8L' && ((file.readUInt32LE(at + 1) >>> 28) & 1) === 1),
  );

/** Frames of the encoded file, each as often as the encoder received it. */
async function expand(encoded: Buffer, count: number): Promise<Uint8Array[]> {
  const { frames, delaysMs = [count * SENTINEL_DELAY_MS] } = await decodeImage(encoded);
  return frames.flatMap((frame, index) =>
    Array.from({ length: (delaysMs[index] ?? 0) / SENTINEL_DELAY_MS }, () => frame),
  );
}

/** Index of the first different frame, or −1: cheaper and clearer than a diff of buffers. */
function firstDifference(actual: readonly Uint8Array[], expected: readonly Uint8Array[]): number {
  expect(actual.length).toBe(expected.length);
  return actual.findIndex((frame, index) => !Buffer.from(frame).equals(expected[index] ?? frame));
}

const size = { width: 40, height: 30 };
const [a, b, c] = [gradient(size, 0), gradient(size, 1), gradient(size, 2)];
const lossless = { lossless: true };

/** A moving sprite, for which the encoder writes merged and disposed frames. */
const sprites = (options: WebpOptions) => ({
  size: { width: 64, height: 48 },
  pictures: (
    [
      [2, 3, 1],
      [40, 21, 4],
      [11, 35, 3],
    ] as const
  ).map(([left, top, colour]) => ({
    ...{ seed: null, backdrop: PALETTE[0], pixel: PALETTE[colour], left, top, edge: 6 },
  })),
  frames: [0, 0, 0, 1, 1, 2, 0].map((picture, at) => ({ picture, delayMs: 5 + at })),
  ...{ plays: 0, channels: 4 as const, options },
});

test('restores any small animation', async () => {
  const edge = (max: number) => fc.integer({ min: 1, max });
  const animations = fc.record({
    size: fc.record({ width: edge(40), height: edge(30) }),
    // Only a few pictures, so that neighbours are often equal: gradients, and rectangles on a backdrop.
    pictures: fc.array(
      fc.record({
        seed: fc.option(fc.nat(3)),
        backdrop: fc.constantFrom(...PALETTE),
        pixel: fc.constantFrom(...PALETTE),
        left: fc.nat(20),
        top: fc.nat(20),
        edge: edge(12),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    frames: fc.array(
      fc.record({ picture: fc.nat(3), delayMs: fc.integer({ min: 0, max: 2 ** 24 - 1 }) }),
      { minLength: 1, maxLength: 10 },
    ),
    plays: fc.oneof(fc.constantFrom(0, 1, 65_535), fc.nat(65_535)),
    channels: fc.constantFrom(3 as const, 4 as const),
    options: fc.constantFrom<WebpOptions>(
      lossless,
      { lossless: true, minSize: true },
      { quality: 80 },
      { quality: 20, mixed: true },
      { quality: 20, mixed: true, minSize: true },
    ),
  });
  const seen = { still: 0, merged: 0, apart: 0, disposed: 0 };
  await fc.assert(
    fc.asyncProperty(animations, async ({ size, pictures, frames, plays, channels, options }) => {
      const drawn = pictures.map(({ seed, backdrop, pixel, left, top, edge }) => {
        const isIn = (x: number, y: number) =>
          x >= left && x < left + edge && y >= top && y < top + edge;
        return seed !== null
          ? gradient(size, seed)
          : draw(size, (x, y) => (isIn(x, y) ? pixel : backdrop));
      });
      const source = frames.flatMap(({ picture }) => drawn[picture % drawn.length] ?? []);
      const encoded = await encode(source, size, options, channels);
      const encodedFrames = list(encoded).filter(({ name }) => name === 'ANMF');
      const isStill = encodedFrames.length === 0;
      const isApart = encodedFrames.length === frames.length;
      seen[isStill ? 'still' : isApart ? 'apart' : 'merged'] += 1;
      const isDisposed = encodedFrames.some(({ at }) => ((encoded[at + 15] ?? 0) & 1) === 1);
      if (isDisposed && !isApart) seen.disposed += 1;
      const delaysMs = frames.map(({ delayMs }) => delayMs);
      const restored = restoreAnimation(encoded, { delaysMs, plays });
      expect(restored.readUInt32LE(4)).toBe(restored.length - 8);
      const names = list(restored).map(({ name }) => name);
      const outer = names.filter((name) => !/^(ALPH|VP8[ L])$/.test(name));
      expect(outer).toEqual(['VP8X', 'ANIM', ...delaysMs.map(() => 'ANMF')]);
      expect(restored[find(restored, 'VP8X')]).toBe(hasAlpha(restored) ? 0x12 : 0x02);
      const background = (file: Buffer) => file.readUInt32LE(find(file, 'ANIM'));
      expect(background(restored)).toBe(isStill ? 0xffff_ffff : background(encoded));
      const metadata = await sharp(restored, { animated: true }).metadata();
      expect(metadata).toMatchObject({ width: size.width, delay: delaysMs, loop: plays });
      expect(metadata.pageHeight ?? metadata.height).toBe(size.height);
      const shown = (await decodeImage(restored)).frames;
      expect(firstDifference(shown, await expand(encoded, delaysMs.length))).toBe(-1);
      if (options.lossless && channels === 4) expect(firstDifference(shown, source)).toBe(-1);
    }),
    { numRuns: 250, examples: [[sprites(lossless)], [sprites({ quality: 80 })]] },
  );
  expect(seen.disposed).toBeGreaterThan(2);
  expect(Math.min(seen.still, seen.merged, seen.apart)).toBeGreaterThan(20);
});

test('keeps the background colour, and clamps values beyond the format', async () => {
  const encoded = await encode([a, b, c], size, lossless);
  encoded.writeUInt32LE(0x12345678, find(encoded, 'ANIM'));
  const restored = restoreAnimation(encoded, { delaysMs: [-5, 2 ** 24, 12.6], plays: 70_000 });
  const { delay, loop } = await sharp(restored, { animated: true }).metadata();
  expect([delay, loop]).toEqual([[0, 2 ** 24 - 1, 13], 65_535]);
  expect(restored.readUInt32LE(find(restored, 'ANIM'))).toBe(0x12345678);
});

test('rejects an encoded file that is truncated anywhere, or has another number of frames than delays', async () => {
  const encoded = await encode([a, b, b], size, { quality: 20 });
  const restore = (file: Uint8Array, ...delaysMs: readonly number[]) =>
    restoreAnimation(file, { delaysMs, plays: 0 });
  for (let length = 0; length < encoded.length; length++) {
    expect(() => restore(encoded.subarray(0, length), 1, 2, 3)).toThrow(/^Expected/);
  }
  for (const delays of [[1, 2], [1, 2, 3, 4], []]) {
    expect(() => restore(encoded, ...delays)).toThrow(/^Expected/);
  }
  encoded.writeUIntLE(33, find(encoded, 'ANMF') + 12, 3);
  expect(() => restore(encoded, 1, 2, 3)).toThrow('Expected a multiple of 20 ms');
});

describe('the frames of an animation replace the canvas', () => {
  const noise = createSeededRandom('frames');
  const opaque = draw(size, () => [noise.integer(99), noise.integer(99), noise.integer(99), 255]);
  const other = draw(size, () => [255, 255 - noise.integer(99), 255 - noise.integer(99), 255]);
  const withNoBlend = (file: Buffer, isSet: boolean): Buffer => {
    const changed = Buffer.from(file);
    for (const { name, at } of list(changed)) {
      if (name === 'ANMF') changed[at + 15] = isSet ? 2 : 0;
    }
    return changed;
  };

  test.each([{ quality: 80 }, lossless])(
    'if all cover it and are opaque, or are not blended: %o',
    async (options) => {
      const opaqueFrames = withNoBlend(await encode([opaque, other], size, options, 3), false);
      expect(replacesCanvas(opaqueFrames)).toBe(true);
      const [clear, inverse] = [0, 1].map((parity) =>
        draw(size, (x, y) => [parity * 255, y * 8, x * 6, (x + y) % 2 === parity ? 255 : 60]),
      ) as [Buffer, Buffer];
      const transparent = await encode([clear, inverse], size, options);
      expect(replacesCanvas(withNoBlend(transparent, true))).toBe(true);
      expect(replacesCanvas(withNoBlend(transparent, false))).toBe(false);
    },
  );

  test('unless the file is damaged', async () => {
    const webp = await encode([opaque, other], size, lossless);
    const frameAt = find(webp, 'ANMF');
    const shortFrame = Buffer.from(webp)
      .fill(3, frameAt - 4, frameAt - 3)
      .fill(0, frameAt - 3, frameAt);
    const longChunk = Buffer.from(webp).fill(255, frameAt - 4, frameAt);
    const noImage = Buffer.from(webp).fill('?', 12);
    const prefixes = webp.map((_, length) => Number(replacesCanvas(webp.subarray(0, length))));
    expect(prefixes.some(Boolean)).toBe(false);
    expect([shortFrame, longChunk, noImage].map(replacesCanvas)).toEqual([false, false, false]);
  });

  test('unless one is smaller', async () => {
    const changed = Buffer.from(opaque).fill(9, 0, 3);
    expect(replacesCanvas(await encode([opaque, changed], size, lossless))).toBe(false);
  });
});

test('a blank frame of the maximum size has all bits of both edges, and alpha', () => {
  expect(createTransparentVp8l(16_384, 16_384).readUInt32LE(1)).toBe(0x1fffffff);
});
