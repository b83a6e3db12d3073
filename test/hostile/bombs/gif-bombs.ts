import { gifControl, gifImage, gifLoop, gifScreen, join, u16le } from '../../formats/containers.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import * as targets from '../targets.ts';
import { BitWriter, type Bomb, bombs, fill, forEach, LARGEST_BYTES, times } from './bomb.ts';

const TRAILER = join(0x3b);
const CODE_BITS = 12;

/** An image descriptor, and the code size after it. */
const descriptor = (widthPx: number, heightPx: number, codeSize = 2): Buffer =>
  join(0x2c, u16le(0, 0, widthPx, heightPx), 0, codeSize);

/** Data in sub-blocks of at most 255 bytes (GIF89a §15). */
export function gifSubBlocks(data: Buffer): Buffer {
  const blocks = Array.from({ length: Math.ceil(data.length / 255) }, (_, index) => {
    const part = data.subarray(index * 255, (index + 1) * 255);
    return join(part.length, part);
  });
  return join(...blocks, 0);
}

/** An image whose codes expand to ever longer runs of one colour, up to 4000 pixels each. */
function longestCodes(widthPx: number, heightPx: number): Buffer {
  const writer = new BitWriter().write(4, 3).write(0, 3);
  let pixels = 1;
  let bits = 3;
  for (let code = 6; code < 4096; code += 1) {
    if (code === 2 ** bits && bits < CODE_BITS) bits += 1;
    writer.write(code, bits);
    pixels += code - 4;
  }
  for (; pixels < widthPx * heightPx; pixels += 4090) writer.write(4095, CODE_BITS);
  return join(descriptor(widthPx, heightPx), gifSubBlocks(writer.write(5, CODE_BITS).toBuffer()));
}

/** Noise in four colours: codes of three bits, with a clear code before they grow. */
function noise(widthPx: number, heightPx: number, seed: string): Buffer {
  const random = createSeededRandom(seed);
  const writer = new BitWriter();
  for (let pixel = 0; pixel < widthPx * heightPx; pixel += 1) {
    if (pixel % 2 === 0) writer.write(4, 3);
    writer.write(random.integer(4), 3);
  }
  return join(descriptor(widthPx, heightPx), gifSubBlocks(writer.write(5, 3).toBuffer()));
}

const gif = (widthPx: number, heightPx: number, ...blocks: readonly Uint8Array[]): Buffer =>
  join(gifScreen(widthPx, heightPx), ...blocks, TRAILER);

const small = gifImage(0, 0, 16, 16);
const endlessBlocks = (): Buffer => fill(LARGEST_BYTES, join(1, 0x55));

export const gifBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    'a screen and a frame of 65535×65535': () =>
      gif(65_535, 65_535, gifImage(0, 0, 65_535, 65_535)),
  }),
  ...bombs('refused', targets.stills, {
    'endless sub-blocks': () => join(gifScreen(16, 16), descriptor(16, 16), endlessBlocks()),
  }),
  ...bombs('in time', [targets.gifLarge, targets.losslessLarge], {
    '6 kB, requested at 4096': () =>
      gif(100, 100, times(300, join(gifControl(5), gifImage(0, 0, 100, 100)))),
  }),
  ...bombs('in time', targets.animations, {
    '100 frames of 2000×2000': () => gif(2000, 2000, times(100, gifImage(0, 0, 2000, 2000))),
  }),
  ...bombs('any', targets.animations, {
    '100 frames of 1500×1500': () => gif(1500, 1500, times(100, gifImage(0, 0, 1500, 1500))),
  }),
  ...bombs('any', targets.allTargets, {
    'later frames larger than the screen': () =>
      gif(16, 16, small, times(500, gifImage(3, 3, 65_535, 65_535))),
    'a frame far outside of the screen': () =>
      gif(16, 16, small, times(500, gifImage(65_535, 65_535, 65_535, 65_535))),
    ...forEach(
      [0, 1, 9, 11, 12, 255],
      (codeSize) => `a code size of ${codeSize}`,
      (size) => gif(16, 16, descriptor(16, 16, size), gifSubBlocks(Buffer.alloc(600, 0x9c))),
    ),
  }),
  ...bombs('any', targets.stills, {
    '100 million px in 20 bytes': () => gif(1, 1, gifImage(0, 0, 10_000, 10_000)),
    '100 million px in the longest codes': () => gif(1, 1, longestCodes(10_000, 10_000)),
  }),
  ...bombs('any', [...targets.animations, targets.gifLarge], {
    '1000 frames of 312×312': () =>
      gif(312, 312, gifLoop(0), times(1000, join(gifControl(2), longestCodes(312, 312)))),
    '1000 frames of noise, 100 of them different': () => {
      const frames = Array.from({ length: 100 }, (_, index) => noise(200, 200, `gif ${index}`));
      const palette = join(0x81, 0, 0, ...[0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255]);
      const films = times(10, join(...frames));
      return join('GIF89a', u16le(200, 200), palette, gifLoop(0), films, TRAILER);
    },
  }),
  ...bombs('any', [targets.animatedSmall, targets.gif], {
    '1024 transparent frames of 312×312 that restore the previous one': () => {
      const control = join(0x21, 0xf9, 4, 0x0d, u16le(7), 0, 0); // GIF89a §23
      return gif(312, 312, times(1024, join(control, gifImage(1, 1, 311, 311))));
    },
  }),
  ...bombs('any', targets.animations, {
    '50 MB of sub-blocks after the last pixel': () =>
      join(gifScreen(16, 16), descriptor(16, 16), endlessBlocks(), 0, TRAILER),
    'the maximum delays and loops': () =>
      gif(16, 16, gifLoop(65_535), times(1000, join(gifControl(65_535), small))),
    'a palette for each of 1024 frames': () => {
      const image = join(0x2c, u16le(0, 0, 16, 16), 0x87, Buffer.alloc(768, 7), 2, 2, 0x44, 1, 0);
      return gif(16, 16, times(1024, image));
    },
  }),
];
