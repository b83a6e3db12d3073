import { readFileSync } from 'node:fs';
import {
  afterIhdr,
  afterSoi,
  anmf,
  gifControl,
  gifImage,
  gifLoop,
  gifScreen,
  join,
  jpegSegment,
  pngChunk,
  riffChunk,
  u16be,
  u32be,
  vp8x,
  webpFile,
} from '../../formats/containers.ts';
import { fill, MEBIBYTE, times } from './bomb.ts';

export const png = readFileSync(
  'fixtures/corpus/png-8/imagers__debug_triangle_corners_widescreen.png',
);
export const jpeg = readFileSync('fixtures/corpus/jpeg-gray/sharp__concert.jpg');

/** A TIFF block with the maximum number of directory entries for its size, without orientation. */
function exif(bytes: number): Buffer {
  const block = Buffer.alloc(bytes);
  block.write('II*\0\x08\0\0\0', 'latin1');
  block.writeUInt16LE(0xffff, 8);
  return block;
}

/** A PNG with a valid `fcTL` and `fdAT` for each frame. */
function apng(frames: number): Buffer {
  const size = png.subarray(16, 24);
  const rest = join(u32be(0), u32be(0), u16be(1), u16be(10), 0, 0);
  const parts = Array.from({ length: frames }, (_, index) => [
    pngChunk('fcTL', join(u32be(2 * index), size, rest)),
    pngChunk('fdAT', join(u32be(2 * index + 1), 0)),
  ]);
  const end = png.indexOf('IDAT', 0, 'latin1') - 4;
  const control = pngChunk('acTL', join(u32be(frames), u32be(0)));
  const chunks = [control, png.subarray(33, end), pngChunk('IDAT', '\0'), ...parts.flat()];
  return join(png.subarray(0, 33), ...chunks, pngChunk('IEND'));
}

/** Appends bytes after the pixels of a JPEG. */
const inScan = (bytes: Uint8Array): Buffer => join(jpeg.subarray(0, -2), bytes, jpeg.subarray(-2));

export const pixel = riffChunk('VP8L', Buffer.from('2f00000000888808', 'hex'));
const alpha = riffChunk('ALPH', Buffer.alloc(2));
export const webp = (flags: number, ...chunks: readonly Uint8Array[]): Buffer =>
  webpFile(vp8x(flags, 1, 1), ...chunks);

export const gif = (...blocks: readonly Uint8Array[]): Buffer =>
  join(gifScreen(1, 1), ...blocks, gifImage(0, 0, 1, 1), ';');
const comment = (subBlocks: number): Buffer => join(0x21, 0xfe, times(subBlocks, join(1, 5)), 0);

/** Files with the maximum number of parts that parsers accept, each as expensive as possible. */
export const largestTables: Readonly<Record<string, () => Buffer>> = {
  'a JPEG of 19 000 EXIF blocks of 200 entries': () =>
    afterSoi(jpeg, times(19_000, jpegSegment(0xe1, join('Exif\0\0', exif(2_400))))),
  'a JPEG of 2 MiB of stuffed zeros': () => inScan(fill(2 * MEBIBYTE, join(0xff, 0))),
  'a JPEG of 2 MiB of restart markers': () => inScan(fill(2 * MEBIBYTE, join(0xff, 0xd0))),
  'a JPEG of 2 MiB of fill bytes': () => afterSoi(jpeg, fill(2 * MEBIBYTE, join(0xff))),
  'a JPEG of 19 000 times 200 fill bytes': () =>
    afterSoi(jpeg, times(19_000, join(Buffer.alloc(200, 0xff), jpegSegment(0xfe, '')))),
  'a PNG of 104 000 colours of 125 samples': () =>
    afterIhdr(png, times(104_000, pngChunk('tRNS', Buffer.alloc(250)))),
  'a PNG of 104 000 EXIF blocks of 20 entries': () =>
    afterIhdr(png, times(104_000, pngChunk('eXIf', exif(240)))),
  'an APNG of 50 000 frames': () => apng(50_000),
  'a WebP of 50 000 frames of three chunks': () =>
    webp(2, times(50_000, anmf(1, alpha, pixel, alpha))),
  'a WebP of 199 000 EXIF blocks of 8 entries': () =>
    webp(8, pixel, times(199_000, riffChunk('EXIF', exif(96)))),
  'a GIF of 100 000 frames': () => gif(times(99_000, join(gifControl(1), gifImage(0, 0, 1, 1)))),
  'a GIF of 199 000 loop extensions': () => gif(times(199_000, gifLoop(1))),
  'a GIF of 199 000 comments of 10 sub-blocks': () => gif(times(199_000, comment(10))),
  'a GIF of 2 MiB of sub-blocks of one byte': () => gif(comment(MEBIBYTE)),
};
