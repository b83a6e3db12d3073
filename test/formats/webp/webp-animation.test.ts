import fc from 'fast-check';
import sharp, { type WebpOptions } from 'sharp';
import { describe, expect, it } from 'vitest';
import {
  createTransparentVp8l,
  restoreAnimation,
  SENTINEL_DELAY_MS,
} from '../../../src/formats/webp/webp-animation.ts';
import { decodeImage } from '../../support/images/image-comparison.ts';
import { riffChunk, webpFile } from '../containers.ts';

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

interface Size {
  readonly width: number;
  readonly height: number;
}

const CLEAR: Pixel = [0, 0, 0, 0];
const RED: Pixel = [255, 0, 0, 255];
const GREEN: Pixel = [0, 200, 0, 255];
const BLUE: Pixel = [0, 0, 255, 255];
const GLASS: Pixel = [90, 180, 30, 128];
const PALETTE = [CLEAR, RED, GREEN, BLUE, GLASS] as const;

/** RGBA bytes of one frame. */
function draw(size: Size, pixelAt: (x: number, y: number) => Pixel): Buffer {
  const pixels = Array.from({ length: size.width * size.height }, (_, at) =>
    pixelAt(at % size.width, Math.floor(at / size.width)),
  );
  return Buffer.from(pixels.flat());
}

/** A square of 6 px at (x, y) on a transparent canvas: the moving sprite. */
function sprite(size: Size, left: number, top: number, pixel: Pixel): Buffer {
  return draw(size, (x, y) =>
    x >= left && x < left + 6 && y >= top && y < top + 6 ? pixel : CLEAR,
  );
}

/** An opaque picture with enough detail for lossy encoding to matter. */
function gradient(size: Size, seed: number): Buffer {
  return draw(size, (x, y) => [(x * 9 + seed * 70) & 255, (y * 11) & 255, (seed * 90) & 255, 255]);
}

async function encode(
  frames: readonly Buffer[],
  { width, height }: Size,
  options: WebpOptions,
  channels: 3 | 4 = 4,
): Promise<Buffer> {
  const raw = { width, height: height * frames.length, channels: 4 as const, pageHeight: height };
  const strip = sharp(Buffer.concat(frames), { raw });
  const delay = frames.map(() => SENTINEL_DELAY_MS);
  return (channels === 3 ? strip.removeAlpha() : strip).webp({ ...options, delay }).toBuffer();
}

/** RGBA bytes of each frame as it is seen, composed by libvips. */
const decode = async (file: Buffer) =>
  (await decodeImage(file)).frames.map((it) => Buffer.from(it));

interface Chunk {
  readonly name: string;
  readonly at: number;
  readonly bytes: number;
}

function* walk(file: Buffer, from: number, to: number): Generator<Chunk> {
  for (let at = from; at < to; ) {
    const bytes = file.readUInt32LE(at + 4);
    yield { name: file.toString('latin1', at, at + 4), at: at + 8, bytes };
    at += 8 + bytes + (bytes % 2);
  }
}

/** What the file says of itself, read with none of the code under test. */
function inspect(file: Buffer) {
  expect(file.toString('latin1', 0, 4)).toBe('RIFF');
  expect(file.readUInt32LE(4)).toBe(file.length - 8);
  expect(file.length % 2).toBe(0);
  const chunks = [...walk(file, 12, file.length)];
  const frames = chunks
    .filter(({ name }) => name === 'ANMF')
    .map(({ at, bytes }) => ({
      left: file.readUIntLE(at, 3) * 2,
      top: file.readUIntLE(at + 3, 3) * 2,
      width: file.readUIntLE(at + 6, 3) + 1,
      height: file.readUIntLE(at + 9, 3) + 1,
      delayMs: file.readUIntLE(at + 12, 3),
      blends: (file.readUInt8(at + 15) & 2) === 0,
      disposes: (file.readUInt8(at + 15) & 1) === 1,
      parts: [...walk(file, at + 16, at + bytes)].map(({ name }) => name),
      bytes: bytes + 8,
    }));
  const header = chunks.find(({ name }) => name === 'VP8X');
  const parameters = chunks.find(({ name }) => name === 'ANIM');
  return {
    names: chunks.map(({ name }) => name),
    flags: header && file.readUInt8(header.at),
    canvas: header && {
      width: file.readUIntLE(header.at + 4, 3) + 1,
      height: file.readUIntLE(header.at + 7, 3) + 1,
    },
    background: parameters && file.readUInt32LE(parameters.at),
    plays: parameters && file.readUInt16LE(parameters.at + 4),
    frames,
  };
}

/** The frames that the encoder's file shows, each as often as the encoder was given it. */
async function expand(encoded: Buffer, count: number): Promise<Buffer[]> {
  const { frames } = inspect(encoded);
  const seen = await decode(encoded);
  return seen.flatMap((frame, index) => {
    const { delayMs = count * SENTINEL_DELAY_MS } = frames[index] ?? {};
    return Array.from({ length: delayMs / SENTINEL_DELAY_MS }, () => frame);
  });
}

/** Index of the first frame that differs, or −1; cheaper and clearer than a diff of buffers. */
function firstDifference(actual: readonly Buffer[], expected: readonly Buffer[]): number {
  expect(actual.length).toBe(expected.length);
  return actual.findIndex((frame, index) => !frame.equals(expected[index] ?? Buffer.alloc(0)));
}

/** Restores, and checks all that must hold of any animation. */
async function restoreAndCheck(
  encoded: Buffer,
  size: Size,
  delaysMs: readonly number[],
  plays: number,
): Promise<Buffer> {
  const restored = restoreAnimation(encoded, { delaysMs, plays });
  const file = inspect(restored);
  expect(file.names).toEqual(['VP8X', 'ANIM', ...delaysMs.map(() => 'ANMF')]);
  expect(file.frames.map(({ delayMs }) => delayMs)).toEqual(delaysMs);
  expect(file.plays).toBe(plays);
  expect(file.canvas).toEqual(size);
  expect(file.background).toBe(inspect(encoded).background ?? 0xffffffff);
  expect(file.flags).toBe((await hasAlpha(restored)) ? 0x12 : 0x02);

  const { delay, loop, pages } = await sharp(restored, { animated: true }).metadata();
  expect({ delay, loop, pages }).toEqual({ delay: delaysMs, loop: plays, pages: delaysMs.length });

  expect(firstDifference(await decode(restored), await expand(encoded, delaysMs.length))).toBe(-1);
  return restored;
}

/** Whether any frame has alpha: by its `ALPH`, or by what libvips finds in its `VP8L` alone. */
async function hasAlpha(file: Buffer): Promise<boolean> {
  for (const { name, at, bytes } of walk(file, 12, file.length)) {
    for (const part of name === 'ANMF' ? walk(file, at + 16, at + bytes) : []) {
      if (part.name === 'ALPH') return true;
      if (part.name !== 'VP8L') continue;
      const bitstream = file.subarray(part.at, part.at + part.bytes);
      if ((await sharp(wrap('VP8L', bitstream)).metadata()).hasAlpha) return true;
    }
  }
  return false;
}

/** A still file with one chunk. */
const wrap = (name: string, payload: Uint8Array): Buffer => webpFile(riffChunk(name, payload));

const size = { width: 40, height: 30 };
const a = gradient(size, 0);
const b = gradient(size, 1);
const c = gradient(size, 2);

describe('a merged frame that is disposed of', () => {
  const canvas = { width: 64, height: 48 };
  const [one, two, three] = [
    sprite(canvas, 2, 3, RED),
    sprite(canvas, 40, 21, GLASS),
    sprite(canvas, 11, 35, BLUE),
  ] as const;

  it.each([
    { mode: 'lossless', options: { lossless: true } },
    { mode: 'lossy', options: { quality: 80 } },
  ])('is seen until its last delay is over, then cleared ($mode)', async ({ options }) => {
    const source = [one, one, one, two, two, three, one];
    const encoded = await encode(source, canvas, options);
    const before = inspect(encoded).frames;
    expect(before.map(({ disposes }) => disposes)).toEqual([true, true, true, false]);

    const restored = await restoreAndCheck(encoded, canvas, [5, 6, 7, 8, 9, 10, 11], 0);

    const after = inspect(restored).frames;
    expect(after.map(({ disposes }) => disposes)).toEqual([
      ...[false, false, true],
      ...[false, true],
      ...[true, false],
    ]);
    const [, blank, clearing, , clearingTwo] = after;
    expect(blank).toMatchObject({ left: 0, top: 0, width: 1, height: 1, blends: true });
    expect(blank).toMatchObject({ parts: ['VP8L'], bytes: 40 });
    for (const [frame, merged] of [
      [clearing, before[0]],
      [clearingTwo, before[1]],
    ]) {
      const { left, top, width, height } = merged ?? {};
      expect(frame).toMatchObject({ left, top, width, height, blends: true, bytes: 40 });
    }
  });

  it('shows the very pixels of the source where the encoding is lossless', async () => {
    const source = [one, one, two, two, two, three, three, one, one];
    const encoded = await encode(source, canvas, { lossless: true });
    const restored = restoreAnimation(encoded, { delaysMs: source.map(() => 0), plays: 0 });
    expect(firstDifference(await decode(restored), source)).toBe(-1);
  });
});

it('restores any small animation', async () => {
  const animations = fc.record({
    size: fc.record({
      width: fc.integer({ min: 1, max: 40 }),
      height: fc.integer({ min: 1, max: 30 }),
    }),
    // A few pictures only, so that neighbours are often equal: gradients, and rectangles on a backdrop.
    pictures: fc.array(
      fc.record({
        seed: fc.option(fc.nat(3)),
        backdrop: fc.constantFrom(...PALETTE),
        pixel: fc.constantFrom(...PALETTE),
        left: fc.nat(20),
        top: fc.nat(20),
        edge: fc.integer({ min: 1, max: 12 }),
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
      { lossless: true },
      { lossless: true, minSize: true },
      { quality: 80 },
      { quality: 20, mixed: true },
      { quality: 20, mixed: true, minSize: true },
    ),
  });
  const seen = { still: 0, merged: 0, apart: 0 };
  await fc.assert(
    fc.asyncProperty(animations, async ({ size, pictures, frames, plays, channels, options }) => {
      const drawn = pictures.map(({ seed, backdrop, pixel, left, top, edge }) =>
        seed !== null
          ? gradient(size, seed)
          : draw(size, (x, y) =>
              x >= left && x < left + edge && y >= top && y < top + edge ? pixel : backdrop,
            ),
      );
      const source = frames.flatMap(({ picture }) => drawn[picture % drawn.length] ?? []);
      const encoded = await encode(source, size, options, channels);
      const encodedFrames = inspect(encoded).frames.length;
      const isApart = encodedFrames === frames.length;
      seen[encodedFrames === 0 ? 'still' : isApart ? 'apart' : 'merged'] += 1;
      const delaysMs = frames.map(({ delayMs }) => delayMs);
      const restored = await restoreAndCheck(encoded, size, delaysMs, plays);
      if (options.lossless && channels === 4) {
        expect(firstDifference(await decode(restored), source)).toBe(-1);
      }
    }),
    { numRuns: 250 },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20);
});

describe('the container', () => {
  it.each([
    ['an animation', [a, b], ['ICCP', 'EXIF', 'XMP ', 'ANIM', 'ANMF']],
    ['a still', [a, a], ['ICCP', 'EXIF', 'XMP ']],
  ])('loses EXIF, XMP and ICC of %s', async (_, frames, names) => {
    const raw = { ...size, height: size.height * 2, channels: 4 as const, pageHeight: size.height };
    const encoded = await sharp(Buffer.concat(frames), { raw })
      .withExif({ IFD0: { Artist: 'somebody' } })
      .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"/>')
      .withIccProfile('srgb')
      .webp({ delay: [SENTINEL_DELAY_MS, SENTINEL_DELAY_MS] })
      .toBuffer();
    const seen = inspect(encoded).names;
    expect(seen).toEqual(expect.arrayContaining(names));
    expect(seen.includes('ANIM')).toBe(names.includes('ANIM'));
    await restoreAndCheck(encoded, size, [1, 2], 1);
  });

  it('loses unknown chunks, those inside a frame too', async () => {
    const encoded = await encode([a, b], size, { lossless: true });
    const unknown = Buffer.from('ABCD\x03\0\0\0xyz\0', 'latin1');
    const padded = Buffer.concat([encoded, unknown, unknown]);
    padded.writeUInt32LE(padded.length - 8, 4);
    const last = [...walk(encoded, 12, encoded.length)].at(-1);
    padded.writeUInt32LE((last?.bytes ?? 0) + unknown.length, (last?.at ?? 0) - 4);
    expect(inspect(padded).names.at(-1)).toBe('ABCD');
    expect(inspect(padded).frames.at(-1)?.parts).toEqual(['VP8L', 'ABCD']);
    const animation = { delaysMs: [1, 2], plays: 0 };
    expect(restoreAnimation(padded, animation)).toEqual(restoreAnimation(encoded, animation));
  });

  it('takes no display scale of a lossy still for a part of its width', async () => {
    const encoded = await encode([a], size, { quality: 80 });
    const width = encoded.indexOf('VP8 ') + 8 + 6;
    encoded.writeUInt16LE(encoded.readUInt16LE(width) | 0xc000, width);
    const restored = restoreAnimation(encoded, { delaysMs: [1], plays: 0 });
    expect(inspect(restored).canvas).toEqual(size);
  });

  it('keeps the background colour', async () => {
    const encoded = await encode([a, b], size, { lossless: true });
    encoded.writeUInt32LE(0x12345678, encoded.indexOf('ANIM') + 8);
    const restored = restoreAnimation(encoded, { delaysMs: [1, 2], plays: 0 });
    expect(inspect(restored).background).toBe(0x12345678);
  });

  it('clamps what it cannot hold', async () => {
    const encoded = await encode([a, b, c], size, { lossless: true });
    const restored = restoreAnimation(encoded, { delaysMs: [-5, 2 ** 24, 12.6], plays: 70_000 });
    const { frames, plays } = inspect(restored);
    expect(frames.map(({ delayMs }) => delayMs)).toEqual([0, 2 ** 24 - 1, 13]);
    expect(plays).toBe(65_535);
  });

  it('reads a view into a larger buffer', async () => {
    const encoded = await encode([a, a, b], size, { lossless: true });
    const view = new Uint8Array(Buffer.concat([Buffer.alloc(13), encoded])).subarray(13);
    const animation = { delaysMs: [1, 2, 3], plays: 0 };
    expect(restoreAnimation(view, animation)).toEqual(restoreAnimation(encoded, animation));
  });
});

describe('an encoded file that does not add up', () => {
  it.each([{ delaysMs: [1, 2] }, { delaysMs: [1, 2, 3, 4] }, { delaysMs: [] }])(
    'is refused for $delaysMs.length delays instead of 3',
    async ({ delaysMs }) => {
      const encoded = await encode([a, a, b], size, { lossless: true });
      expect(() => restoreAnimation(encoded, { delaysMs, plays: 0 })).toThrow(
        `Expected ${delaysMs.length} source frames in the WebP but received 3`,
      );
    },
  );

  it('is refused when its delays were not the sentinel', async () => {
    const encoded = await encode([a, b], size, { lossless: true });
    const first = [...walk(encoded, 12, encoded.length)].find(({ name }) => name === 'ANMF');
    encoded.writeUIntLE(33, (first?.at ?? 0) + 12, 3);
    expect(() => restoreAnimation(encoded, { delaysMs: [1, 2], plays: 0 })).toThrow(
      'Expected a multiple of 20 ms for a frame but received 33 ms',
    );
  });

  it('is refused when it is a still and there is no delay', async () => {
    const encoded = await encode([a], size, { lossless: true });
    expect(() => restoreAnimation(encoded, { delaysMs: [], plays: 0 })).toThrow(/source frames/);
  });

  it('is refused when it is cut off anywhere', async () => {
    const encoded = await encode([a, b, b], size, { quality: 20 });
    for (let length = 0; length < encoded.length; length++) {
      const cut = encoded.subarray(0, length);
      expect(() => restoreAnimation(cut, { delaysMs: [1, 2, 3], plays: 0 })).toThrow(/^Expected/);
    }
  });

  it('is refused when it is no WebP or has no image', () => {
    const animation = { delaysMs: [1], plays: 0 };
    expect(() => restoreAnimation(Buffer.from('GIF89a'), animation)).toThrow(/^Expected/);
    const empty = wrap('EXIF', Buffer.alloc(2));
    expect(() => restoreAnimation(empty, animation)).toThrow('Expected an image');
  });
});

describe('a transparent VP8L bitstream', () => {
  it.each([
    [1, 1],
    [2, 1],
    [1, 2],
    [17, 255],
    [256, 257],
    [1023, 3],
    [16_383, 5],
    [5, 16_383],
    [4096, 4096],
  ])('of %i×%i px is 8 bytes and decodes to transparent black', async (width, height) => {
    const bitstream = createTransparentVp8l(width, height);
    expect(bitstream.length).toBe(8);
    const { data, info } = await sharp(wrap('VP8L', bitstream))
      .raw()
      .toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width, height, channels: 4 });
    expect(data.equals(Buffer.alloc(width * height * 4))).toBe(true);
  });

  it('can have the largest edge of the format, which libvips does not open', () => {
    // 14 bits of ones, 14 bits of ones, alpha is used, version 0.
    expect(createTransparentVp8l(16_384, 16_384).readUInt32LE(1)).toBe(0x1fffffff);
  });
});
