import { deflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { checkStillData } from '../../../src/formats/png/image-data.ts';
import { join, pngChunk, u32be } from '../containers.ts';

const MEBIBYTE = 2 ** 20;

/** A grey PNG that holds so many bytes of zeros, in so many chunks. */
function grey(edgePx: number, bytes: number, pieces = 1): Buffer {
  const data = deflateSync(Buffer.alloc(bytes));
  const pieceBytes = Math.ceil(data.length / pieces);
  return join(
    '\x89PNG\r\n\x1a\n',
    pngChunk('IHDR', join(u32be(edgePx), u32be(edgePx), 8, 0, '\0\0\0')),
    ...Array.from({ length: pieces }, (_, index) =>
      pngChunk('IDAT', data.subarray(index * pieceBytes).subarray(0, pieceBytes)),
    ),
    pngChunk('IEND'),
  );
}

test.each([
  ['its rows', grey(100, 100 * 101)],
  ['some more', grey(100, 64 * 1024)],
  ['as much more as costs nothing', grey(16, 32 * MEBIBYTE)],
  ['far more, in so few bytes that they cost nothing', grey(2_000, 64 * MEBIBYTE)],
  ['what is no zlib stream, which its decoder says', grey(100, 0).fill(7, 41, 60)],
])('the image data of a still PNG may hold %s', async (_, png) => {
  await expect(checkStillData(png)).resolves.toBeUndefined();
});

test.each([
  ['in one chunk', 1],
  ['in many', 50],
])('image data of a still PNG a thousand times its size is refused, %s', async (_, pieces) => {
  await expect(checkStillData(grey(100, 80 * MEBIBYTE, pieces))).rejects.toMatchObject({
    code: 'UNPROCESSABLE_MEDIA',
    cause: expect.objectContaining({ message: expect.stringContaining('image data') }),
  });
});
