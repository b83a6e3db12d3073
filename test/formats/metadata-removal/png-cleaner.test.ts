import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { ByteReader } from '../../../src/formats/byte-reader.ts';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import { hasValidCrc, iteratePngChunks } from '../../../src/formats/png/png-chunks.ts';
import { afterIhdr, join, pngChunk, put, tiffOrientation } from '../containers.ts';
import { corpusFile, corpusFiles, headerOf } from '../header-of.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import { expectSamePicture } from './pixels.ts';

const blank = await sharp({ create: { width: 4, height: 2, channels: 3, background: '#c33' } })
  .png()
  .toBuffer();

describe('a cleaned PNG', () => {
  test.each([
    ['tEXt', join('Comment\0', SECRET)],
    ['zTXt', join('Comment\0\0', deflateSync(SECRET), SECRET)],
    ['iTXt', join('XML:com.adobe.xmp\0\0\0\0\0', SECRET)],
    ['tIME', join('\x07\xea\x0b\x1c\0\0\0', SECRET)],
    ['eXIf', join('II*\0', SECRET)],
    ['caBX', join(SECRET)],
    ['sPLT', join(SECRET, '\0\x08')],
    ['iDOT', join(SECRET, 'x'.repeat(200_000), SECRET)],
  ])('has no %s', async (type, payload) => {
    const file = afterIhdr(blank, pngChunk(type, payload));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes(type)).toBe(false);
    expectRightCrcs(cleaned);
    await expectSamePicture(cleaned, file);
  });

  test.each([1, 2, 6, 8])('has the orientation %i and no other EXIF', async (orientation) => {
    const exif = pngChunk('eXIf', join(tiffOrientation(orientation, 'MM'), SECRET));
    const file = afterIhdr(blank, exif, pngChunk('eXIf', tiffOrientation(3)));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(headerOf(cleaned).orientation).toBe(orientation);
    expect(cleaned.lastIndexOf('eXIf')).toBe(cleaned.indexOf('eXIf'));
    expectRightCrcs(cleaned);
    await expectSamePicture(cleaned, file);
  });

  test('has the orientation of an EXIF block that is longer than the buffer', async () => {
    const exif = join(tiffOrientation(6), 'x'.repeat(300_000), SECRET);
    const file = afterIhdr(blank, pngChunk('eXIf', exif));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(headerOf(cleaned).orientation).toBe(6);
    expectRightCrcs(cleaned);
  });

  test('has zeros after its end', () => {
    const cleaned = cleanInAnyChunks(join(blank, SECRET, pngChunk('IEND')));
    expect(cleaned).toEqual(join(blank, Buffer.alloc(SECRET.length + 12)));
  });

  test('keeps the chunks for colours, density and animation', () => {
    const types = ['cHRM', 'gAMA', 'iCCP', 'sBIT', 'sRGB', 'cICP', 'mDCV', 'cLLI', 'bKGD', 'hIST'];
    const more = ['tRNS', 'pHYs', 'acTL', 'fcTL', 'fdAT', 'PLTE'];
    const file = afterIhdr(blank, ...[...types, ...more].map((type) => pngChunk(type, 'payload')));
    expect(cleanInAnyChunks(file).equals(file)).toBe(true);
  });

  test('has the same pixels in all frames', async () => {
    for (const name of corpusFiles('apng', 'png-8', 'png-orientation', 'png-alpha')) {
      const file = corpusFile(name);
      await expectSamePicture(cleanInAnyChunks(file), file);
    }
  });
});

describe('rejects a PNG', () => {
  const longExif = join('II*\0', Buffer.from([0, 0, 2, 0]), Buffer.alloc(200_000));
  test.each([
    ['without its end', blank.subarray(0, -12), 'The PNG is truncated.'],
    ['that ends within a chunk', blank.subarray(0, 40), 'The PNG is truncated.'],
    ['without an image', join(blank.subarray(0, 33), pngChunk('IEND')), 'unexpected IEND.'],
    ['with an invalid type', put(blank, 37, 0), 'The PNG is damaged: invalid chunk.'],
    ['with a far directory of EXIF', afterIhdr(blank, pngChunk('eXIf', longExif)), 'too long.'],
  ])('%s', (_, file, message) => {
    for (const sizes of [[file.length], [1]]) {
      expect(() => clean(file, sizes)).toThrow(MetadataRemovalError);
      expect(() => clean(file, sizes)).toThrow(message);
    }
  });
});

function expectRightCrcs(png: Buffer): void {
  const reader = new ByteReader(png, 'PNG');
  for (const chunk of iteratePngChunks(png)) expect(hasValidCrc(reader, chunk)).toBe(true);
}
