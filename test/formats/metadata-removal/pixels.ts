import sharp from 'sharp';
import { expect } from 'vitest';
import { readImageHeader } from '../../../src/formats/containers.ts';
import { isHeif } from '../../../src/formats/heif/heif-header.ts';

/** Expects two files to have the same size, frames, delays and pixels. */
export async function expectSamePicture(cleaned: Uint8Array, file: Uint8Array): Promise<void> {
  const {
    isClean: _,
    isPlain: __,
    ...expected
  } = readImageHeader(file) ?? expect.fail('not an image');
  expect(readImageHeader(cleaned)).toMatchObject(expected);
  expect((await pixelsOf(cleaned)).equals(await pixelsOf(file))).toBe(true);
}

async function pixelsOf(file: Uint8Array): Promise<Buffer> {
  // libheif has no sequences, and cannot read all pictures if their sizes differ.
  const animated = !isHeif(file);
  return await sharp(file, { failOn: 'none', animated }).raw().toBuffer();
}
