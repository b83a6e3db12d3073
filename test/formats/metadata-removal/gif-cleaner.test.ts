import { describe, expect, test } from 'vitest';
import { iterateGifBlocks } from '../../../src/formats/gif/gif-blocks.ts';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import { gifControl, gifImage, gifLoop, gifScreen, join, type Part } from '../containers.ts';
import { corpusFile, corpusFiles, headerOf } from '../header-of.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import { expectSamePicture } from './pixels.ts';

const frame = join(gifControl(7), gifImage(0, 0, 1, 1));
const gif = (...blocks: readonly Part[]) => join(gifScreen(1, 1), ...blocks, frame, frame, ';');

function subBlocks(...lengths: readonly number[]): Buffer {
  const text = SECRET.repeat(20);
  return join(...lengths.flatMap((length) => [length, text.slice(0, length)]), 0);
}

/** XMP without sub-blocks: its end stops readers of sub-blocks at any offset. */
const xmp = join(
  ...['!\xff\x0bXMP DataXMP', `<x>${SECRET.repeat(40)}</x>`],
  ...[1, Buffer.from(Array.from({ length: 256 }, (_, index) => 255 - index)), 0],
);

describe('a cleaned GIF', () => {
  test.each([
    ['comments', join('!\xfe', subBlocks(SECRET.length))],
    ['comments of several sub-blocks', join('!\xfe', subBlocks(255, 1, 255, 7, 255, 255, 30))],
    ['XMP', xmp],
    ['profiles', join('!\xff\x0bICCRGBG1012', subBlocks(255, 100))],
    ['unknown extensions', join('!\x77', subBlocks(40))],
  ])('has no %s', async (_, extension) => {
    const file = gif(extension, gifLoop(3));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    const extensionEnd = 19 + extension.length;
    expect(cleaned.subarray(extensionEnd).equals(file.subarray(extensionEnd))).toBe(true);
    expect([...iterateGifBlocks(cleaned)].map(({ start }) => start)).toContain(extensionEnd);
    expect(headerOf(cleaned)).toMatchObject({ frames: 2 });
    await expectSamePicture(cleaned, file);
  });

  test('has no secret in sub-blocks of any total length', () => {
    for (let length = 1; length <= 255; length += 1) {
      const extension = join('!\xfe', subBlocks(255, length, 2));
      expectNoSecret(gif(extension), cleanInAnyChunks(gif(extension)));
      expect(headerOf(clean(gif(extension)).bytes).frames).toBe(2);
    }
  });

  test('has zeros after its end', () => {
    const cleaned = cleanInAnyChunks(join(gif(), SECRET));
    expect(cleaned).toEqual(join(gif(), Buffer.alloc(SECRET.length)));
  });

  test.each([
    ['a zero before its trailer', gif().subarray(0, -1), join(0, ';', SECRET)],
    ['bytes between its images', gif().subarray(0, -1), join('PK', frame, SECRET, ';')],
  ])('has zeros from %s on, as decoders stop there', async (_, images, rest) => {
    const file = join(images, rest);
    const cleaned = cleanInAnyChunks(file);
    expect(cleaned).toEqual(join(images, Buffer.alloc(rest.length)));
    await expectSamePicture(cleaned, file);
  });

  test.each([
    ['loop counts', gif(gifLoop(3), gifLoop(4, 'ANIMEXTS1.0'))],
    ['text that is drawn', gif('!\x01\x0c', Buffer.alloc(12), subBlocks(9))],
    ['an empty comment', gif('!\xfe\0')],
    ['a missing trailer', gif().subarray(0, -1)],
  ])('keeps %s', (_, file) => {
    expect(cleanInAnyChunks(file).equals(file)).toBe(true);
  });

  test('has the same pixels in all frames', async () => {
    for (const name of corpusFiles('gif-animated', 'gif-delays', 'gif-static', 'emoji-small')) {
      const file = corpusFile(name);
      if (file.subarray(0, 3).toString() !== 'GIF') continue;
      await expectSamePicture(cleanInAnyChunks(file), file);
    }
  });
});

describe('rejects a GIF', () => {
  test.each([
    ['that ends within an image', gif().subarray(0, -4), 'The GIF is truncated.'],
    ['that ends within an extension', gif('!\xfe\x09').subarray(0, 24), 'The GIF is truncated.'],
    ['with bytes between blocks', gif('PK'), 'The GIF is damaged: unknown block.'],
    ['with an empty extension', gif('!\xff\0'), 'an extension without data.'],
  ])('%s', (_, file, message) => {
    for (const sizes of [[file.length], [1]]) {
      expect(() => clean(file, sizes)).toThrow(MetadataRemovalError);
      expect(() => clean(file, sizes)).toThrow(message);
    }
  });
});
