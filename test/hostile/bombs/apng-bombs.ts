import { deflateSync } from 'node:zlib';
import { join, pngChunk, u32be } from '../../formats/containers.ts';
import { type ApngChunk, drawApng } from '../../support/images/draw-apng.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, MEBIBYTE } from './bomb.ts';
import { zeros } from './png-bombs.ts';

const animated = [targets.animatedSmall, targets.gif];
const stillAndAnimated = [targets.stillSmall, ...animated];

const draw = (): number[] => [200, 30, 90, 160];
const dot = { draw, widthPx: 1, heightPx: 1, blend: 'over' } as const;

/** Frames of one pixel on a square canvas, with chunks before the image data. */
function dots(count: number, edgePx: number, ...before: readonly ApngChunk[]): Buffer {
  const frames = [{ draw }, ...Array.from({ length: count - 1 }, () => dot)];
  return drawApng({ widthPx: edgePx, heightPx: edgePx, before, frames });
}

/** Frames that fill a grey canvas, all with the same compressed image data. */
function film(edgePx: number, frames: number, data: Buffer, modes = '\0\0'): Buffer {
  const size = join(u32be(edgePx), u32be(edgePx));
  const control = join(size, u32be(0), u32be(0), '\0\x01\0\x64', modes);
  const chunks = Array.from({ length: frames - 1 }, (_, at) => [
    pngChunk('fcTL', join(u32be(2 * at + 1), control)),
    pngChunk('fdAT', join(u32be(2 * at + 2), data)),
  ]);
  return join(
    ...['\x89PNG\r\n\x1a\n', pngChunk('IHDR', join(size, '\x08\0\0\0\0'))],
    pngChunk('acTL', join(u32be(frames), u32be(0))),
    ...[pngChunk('fcTL', join(u32be(0), control)), pngChunk('IDAT', data)],
    ...[...chunks.flat(), pngChunk('IEND')],
  );
}

export const apngBombs: readonly Bomb[] = [
  ...bombs('refused without a render', [...stillAndAnimated, targets.png], {
    '10 000 frames of a pixel': () => dots(10_000, 16),
  }),
  ...bombs('refused without a render', animated, {
    '1 000 frames of 600×600': () => dots(1_000, 600),
    'two frames of 65 535×65 535': () => film(65_535, 2, zeros(1)),
  }),
  ...bombs('refused', animated, {
    'two frames of 7000×7000 with 1 MiB of data': () => film(7_000, 2, zeros(1)),
  }),
  ...bombs('any', animated, {
    '40 GB of image data for 16×16': () => film(16, 2, zeros(20_000 * MEBIBYTE)),
  }),
  ...bombs('in time', animated, {
    '1 000 frames of 400×400': () => dots(1_000, 400),
  }),
  ...bombs('in time', stillAndAnimated, {
    'a frame in 90 000 chunks': () =>
      drawApng({
        ...{ widthPx: 160, heightPx: 160, pieces: 90_000 },
        frames: [{ draw: (x, y) => [x * y, x ^ y, x + y, 255].map((v) => v & 255) }, dot],
      }),
  }),
  ...bombs('any', [...animated, targets.losslessLarge, targets.gifLarge], {
    '100 frames of 1000×1000 that restore the previous one': () =>
      film(1_000, 100, deflateSync(Buffer.alloc(1_001 * 1_000)), '\x02\x01'),
  }),
];
