import sharp from 'sharp';
import { createTransparentVp8l } from '../../../src/formats/webp/webp-animation.ts';
import { anmf, join, riffChunk, u24le, vp8x, webpFile } from '../../formats/containers.ts';
import * as targets from '../targets.ts';
import { BitWriter, type Bomb, bombs, LARGEST_BYTES, times } from './bomb.ts';
import { iccOf } from './metadata-bombs.ts';

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, exif: 0x08, alpha: 0x10, icc: 0x20 } as const;

const lossless = (widthPx: number, heightPx: number): Buffer =>
  riffChunk('VP8L', createTransparentVp8l(widthPx, heightPx));

/** A frame of one lossless image at an offset. */
function frameAt(x: number, y: number, widthPx: number, heightPx: number): Buffer {
  const fields = [x / 2, y / 2, widthPx - 1, heightPx - 1, 50].map(u24le);
  return riffChunk('ANMF', join(...fields, 0, lossless(widthPx, heightPx)));
}

function animation(widthPx: number, heightPx: number, ...frames: readonly Uint8Array[]): Buffer {
  const anim = riffChunk('ANIM', Buffer.alloc(6));
  return webpFile(vp8x(flag.animation | flag.alpha, widthPx, heightPx), anim, ...frames);
}

/** A lossless bitstream of a square, with bits after its header (RFC 9649 §3.4). */
function vp8l(edgePx: number, body: (writer: BitWriter) => void): Buffer {
  const writer = new BitWriter()
    .write(0x2f, 8)
    .write(edgePx - 1, 14)
    .write(edgePx - 1, 14);
  body(writer.write(1, 4)); // alpha is used, version 0
  return riffChunk('VP8L', writer.toBuffer());
}

/** A prefix code of one symbol, 0, which needs no bits. */
const NOTHING = [1, 4] as const;

/** The maximum of 65 536 groups of prefix codes, each for 4×4 px (RFC 9649 §3.7.2.2): 160 kB need hundreds of MB. */
const everyGroup = (): Buffer =>
  vp8l(1024, (writer) => {
    writer.write(0, 1); // no transform
    writer.write(1, 1).write(11, 4); // a colour cache of 11 bits, for longer tables
    writer.write(1, 1).write(0, 3); // groups, of 4×4 px
    writer.write(0, 1); // the image of their numbers has no colour cache
    writeBytes(writer, 256 + 24); // green: the low byte of the number
    writeBytes(writer, 256); // red: the high one
    for (let code = 0; code < 3; code += 1) writer.write(...NOTHING);
    for (let group = 0; group < 65_536; group += 1) writer.write(group, 16);
    for (let code = 0; code < 5 * 65_536; code += 1) writer.write(...NOTHING);
  });

/** A prefix code of 256 symbols with 8 bits each; the rest of the alphabet has none. */
function writeBytes(writer: BitWriter, alphabet: number): void {
  writer.write(0, 1).write(12 - 4, 4);
  // Lengths of the codes for 17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7 and 8: a bit for 0, and one for 8.
  for (const bits of [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]) writer.write(bits, 3);
  writer.write(0, 1);
  for (let symbol = 0; symbol < alphabet; symbol += 1) writer.write(symbol < 256 ? 1 : 0, 1);
}

/** Inconsistent code lengths: the tables of CVE-2023-4863. */
const overfullCodes = (): Buffer =>
  vp8l(64, (writer) => {
    writer.write(0, 3).write(0, 1).write(15, 4);
    for (let code = 0; code < 19; code += 1) writer.write(1, 3);
    for (let code = 0; code < 4000; code += 1) writer.write(code * 2_654_435_761, 32);
  });

/** A lossy image of one colour after chunks of alpha. */
async function withAlpha(edgePx: number, alpha: Uint8Array): Promise<Buffer> {
  const create = { width: edgePx, height: edgePx, channels: 3, background: '#fff' } as const;
  const image = await sharp({ create }).webp({ quality: 1, effort: 0 }).toBuffer();
  return webpFile(vp8x(flag.alpha, edgePx, edgePx), alpha, image.subarray(12));
}

/** An alpha plane of any size in three bytes: no filter, lossless (RFC 9649 §2.7.1.2). */
const tinyAlpha = riffChunk(
  'ALPH',
  join(1, new BitWriter().write(0, 3).write(0x11111, 20).toBuffer()),
);

/** Noise that encoders cannot compress. */
function noise(edgePx: number): Promise<Buffer> {
  const grey = { width: edgePx, height: edgePx, channels: 3, background: '#888' } as const;
  return sharp({ create: { ...grey, noise: { type: 'gaussian', mean: 128, sigma: 60 } } })
    .webp({ quality: 50, effort: 0 })
    .toBuffer();
}

export const webpBombs: readonly Bomb[] = [
  ...bombs('refused without a render', targets.allTargets, {
    '16384×16384 in 8 bytes': () => webpFile(lossless(16_384, 16_384)),
    'a canvas of 16777216×16777216': () => animation(16_777_216, 16_777_216, frameAt(0, 0, 1, 1)),
    '40 000 frames of 1×1': () => animation(1, 1, times(40_000, frameAt(0, 0, 1, 1))),
  }),
  ...bombs('in time', [targets.losslessLarge, targets.pngLarge], {
    'noise at 4096, lossless': () => noise(4096),
  }),
  ...bombs('any', [targets.stillSmall, targets.losslessLarge], {
    'noise of 36 million px': () => noise(6_000),
  }),
  ...bombs('any', [targets.animatedSmall], {
    '90 frames of 65 536 groups': () => animation(1024, 1024, times(90, anmf(50, everyGroup()))),
  }),
  ...bombs('any', targets.allTargets, {
    'inconsistent prefix codes': () => webpFile(overfullCodes()),
  }),
  ...bombs('any', targets.animations, {
    '1024 frames of 312×312': () => animation(312, 312, times(1024, frameAt(0, 0, 312, 312))),
  }),
  ...bombs('any', targets.stills, {
    '100 million px in 8 bytes': () => webpFile(lossless(10_000, 10_000)),
    '65 536 groups of prefix codes': () => webpFile(everyGroup()),
    '64 million px of alpha in three bytes': () => withAlpha(8_000, tinyAlpha),
    '50 MB of alpha for 16×16': () => withAlpha(16, riffChunk('ALPH', Buffer.alloc(LARGEST_BYTES))),
    '20 000 alpha planes': () => withAlpha(16, times(20_000, tinyAlpha)),
    'a profile of 40 MB': () => {
      const profile = riffChunk('ICCP', iccOf(1000, 40_000_000, 19_000_000));
      return webpFile(vp8x(flag.icc, 16, 16), profile, lossless(16, 16));
    },
  }),
];
