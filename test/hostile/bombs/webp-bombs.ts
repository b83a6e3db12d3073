import sharp from 'sharp';
import { createTransparentVp8l } from '../../../src/formats/webp/webp-animation.ts';
import { anmf, join, riffChunk, u24le, vp8x, webpFile } from '../../formats/containers.ts';
import * as ways from '../ways.ts';
import { BitWriter } from './bit-writer.ts';
import { type Bomb, bomb, LARGEST_BYTES, MEBIBYTE, repeat } from './bomb.ts';
import { exifInCircles, exifOfOverlaps, iccOf } from './metadata-bombs.ts';

/** Flags of VP8X (RFC 9649 §2.7.1). */
const flag = { animation: 0x02, exif: 0x08, alpha: 0x10, icc: 0x20 } as const;

function lossless(widthPx: number, heightPx: number): Buffer {
  return riffChunk('VP8L', createTransparentVp8l(widthPx, heightPx));
}

const anim = riffChunk('ANIM', Buffer.alloc(6));

/** A frame of one lossless image at an offset of pixels. */
function frameAt(x: number, y: number, widthPx: number, heightPx: number): Buffer {
  const fields = [x / 2, y / 2, widthPx - 1, heightPx - 1, 50].map(u24le);
  return riffChunk('ANMF', join(...fields, 0, lossless(widthPx, heightPx)));
}

function animation(widthPx: number, heightPx: number, frames: Uint8Array): Buffer {
  return webpFile(vp8x(flag.animation | flag.alpha, widthPx, heightPx), anim, frames);
}

function times(count: number, part: Uint8Array): Buffer {
  return repeat(part, count * part.length);
}

/** A lossless bitstream whose header is followed by these bits (RFC 9649 §3.4). */
function vp8l(widthPx: number, heightPx: number, body: (writer: BitWriter) => void): Buffer {
  const writer = new BitWriter('low first')
    .write(0x2f, 8)
    .write(widthPx - 1, 14)
    .write(heightPx - 1, 14)
    .write(1, 4); // alpha is used, version 0
  body(writer);
  return writer.toBuffer();
}

/** A prefix code of one symbol, 0: it takes no bit per pixel. */
const NOTHING = [1, 4] as const;

/**
 * 65 536 groups of prefix codes, the most there can be, each used by 4×4 px of its own (RFC 9649
 * §3.7.2.2): 160 kB that want tables of several hundred megabytes.
 */
function everyGroup(): Buffer {
  return vp8l(1024, 1024, (writer) => {
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
}

/** A prefix code of 256 symbols of 8 bits each, and of none for the rest of the alphabet. */
function writeBytes(writer: BitWriter, alphabet: number): void {
  writer.write(0, 1).write(12 - 4, 4);
  // Lengths of the codes for 17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7 and 8: a bit for 0, and one for 8.
  for (const bits of [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]) writer.write(bits, 3);
  writer.write(0, 1);
  for (let symbol = 0; symbol < alphabet; symbol += 1) writer.write(symbol < 256 ? 1 : 0, 1);
}

/** Length codes that contradict each other: the tables that CVE-2023-4863 was about. */
function overfullCodes(): Buffer {
  return vp8l(64, 64, (writer) => {
    writer.write(0, 3).write(0, 1).write(15, 4);
    for (let code = 0; code < 19; code += 1) writer.write(1, 3);
    for (let code = 0; code < 4000; code += 1) writer.write(code * 2_654_435_761, 32);
  });
}

async function lossy(widthPx: number, heightPx: number): Promise<Buffer> {
  const image = await sharp({
    create: { width: widthPx, height: heightPx, channels: 3, background: '#fff' },
  })
    .webp({ quality: 1, effort: 0 })
    .toBuffer();
  return image.subarray(12);
}

/** An alpha plane in three bytes, whatever its size: no filter, lossless (RFC 9649 §2.7.1.2). */
const tinyAlpha = riffChunk(
  'ALPH',
  join(1, new BitWriter('low first').write(0, 3).write(0x11111, 20).toBuffer()),
);

/** Noise that no encoder makes smaller, at the largest width that is asked for. */
async function noise(widthPx: number, heightPx: number): Promise<Buffer> {
  const noisy = await sharp({
    create: {
      width: widthPx,
      height: heightPx,
      channels: 3,
      background: '#888',
      noise: { type: 'gaussian', mean: 128, sigma: 60 },
    },
  })
    .webp({ quality: 50, effort: 0 })
    .toBuffer();
  return noisy;
}

const moving = [ways.stillSmall, ways.animatedSmall, ways.gif, ways.losslessLarge];
const still = [ways.stillSmall, ways.jpeg];

/** A file whose RIFF size is not what follows. */
function lying(sizeBytes: number): Buffer {
  const file = webpFile(lossless(64, 64));
  file.writeUInt32LE(sizeBytes, 4);
  return file;
}

export const webpBombs: readonly Bomb[] = [
  bomb(
    '16384×16384 in 8 bytes',
    ways.everyWay,
    () => webpFile(lossless(16_384, 16_384)),
    'refused unseen',
  ),
  bomb('100 million px in 8 bytes', still, () => webpFile(lossless(10_000, 10_000))),
  bomb(
    'a canvas larger than its image',
    ways.everyWay,
    () => webpFile(vp8x(flag.alpha, 9_000, 9_000), lossless(16, 16)),
    'refused unseen',
  ),
  bomb(
    'a canvas smaller than its image',
    ways.everyWay,
    () => webpFile(vp8x(flag.alpha, 16, 16), lossless(9_000, 9_000)),
    'refused unseen',
  ),
  bomb(
    'a canvas of 16777216×16777216',
    ways.everyWay,
    () => animation(16_777_216, 16_777_216, frameAt(0, 0, 1, 1)),
    'refused unseen',
  ),
  bomb('a canvas of 10000×10000, a frame of 1×1', still, () =>
    animation(10_000, 10_000, frameAt(0, 0, 1, 1)),
  ),
  bomb(
    '40 000 frames of 1×1',
    ways.everyWay,
    () => animation(1, 1, times(40_000, frameAt(0, 0, 1, 1))),
    'refused unseen',
  ),
  bomb('1024 frames of 312×312', moving, () =>
    animation(312, 312, times(1024, frameAt(0, 0, 312, 312))),
  ),
  bomb('1024 frames of 1×1 on 312×312', moving, () =>
    animation(312, 312, times(1024, frameAt(310, 310, 1, 1))),
  ),
  bomb(
    'a frame outside of the canvas',
    ways.everyWay,
    () => animation(64, 64, join(frameAt(0, 0, 64, 64), frameAt(64, 64, 2, 2))),
    'refused unseen',
  ),
  bomb(
    'a frame at the far end of all numbers',
    ways.everyWay,
    () => animation(64, 64, join(frameAt(0, 0, 64, 64), frameAt(33_554_430, 0, 2, 2))),
    'refused unseen',
  ),
  bomb('a frame whose fields say another size', moving, () =>
    animation(64, 64, times(3, anmf(50, lossless(64, 64)))),
  ),
  bomb('65 536 groups of prefix codes', still, () => webpFile(riffChunk('VP8L', everyGroup()))),
  bomb('100 frames of 65 536 groups', [ways.animatedSmall], () =>
    animation(1024, 1024, times(90, anmf(50, riffChunk('VP8L', everyGroup())))),
  ),
  bomb('prefix codes that contradict each other', ways.everyWay, () =>
    webpFile(riffChunk('VP8L', overfullCodes())),
  ),
  bomb('64 million px of alpha in three bytes', still, async () =>
    webpFile(vp8x(flag.alpha, 8_000, 8_000), tinyAlpha, await lossy(8_000, 8_000)),
  ),
  bomb('50 MB of alpha for 16×16', still, async () =>
    webpFile(
      vp8x(flag.alpha, 16, 16),
      riffChunk('ALPH', Buffer.alloc(LARGEST_BYTES)),
      await lossy(16, 16),
    ),
  ),
  bomb('20 000 alpha planes', still, async () =>
    webpFile(vp8x(flag.alpha, 16, 16), times(20_000, tinyAlpha), await lossy(16, 16)),
  ),
  bomb(
    'noise at 4096, lossless',
    [ways.losslessLarge, ways.pngLarge],
    () => noise(4096, 4096),
    'in time',
  ),
  bomb('noise of 36 million px', [ways.stillSmall, ways.losslessLarge], () => noise(6_000, 6_000)),
  bomb('six million chunks', still, () =>
    webpFile(
      vp8x(0, 16, 16),
      lossless(16, 16),
      times(6_000_000, riffChunk('junk', Buffer.alloc(0))),
    ),
  ),
  bomb('six million chunks in a frame', still, () =>
    animation(
      16,
      16,
      anmf(50, lossless(16, 16), times(6_000_000, riffChunk('junk', Buffer.alloc(0)))),
    ),
  ),
  ...[0, 4, 11, 12, 19, 28, 0x7fff_ffff, 0xffff_fffe, 0xffff_ffff].map((sizeBytes) =>
    bomb(`a RIFF size of ${sizeBytes}`, ways.everyWay, () => lying(sizeBytes), 'refused unseen'),
  ),
  bomb(
    'EXIF in circles',
    still,
    () => webpFile(vp8x(flag.exif, 16, 16), lossless(16, 16), riffChunk('EXIF', exifInCircles())),
    'served',
  ),
  bomb('EXIF of 17 000 overlapping megabytes', still, () =>
    webpFile(
      vp8x(flag.exif, 16, 16),
      lossless(16, 16),
      riffChunk('EXIF', exifOfOverlaps(MEBIBYTE - 64)),
    ),
  ),
  bomb('a profile of 40 MB', still, () =>
    webpFile(
      vp8x(flag.icc, 16, 16),
      riffChunk('ICCP', iccOf(1000, 40_000_000, 19_000_000)),
      lossless(16, 16),
    ),
  ),
];
