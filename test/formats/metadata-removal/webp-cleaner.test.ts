import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import { FIRST_CHUNK, iterateRiffChunks } from '../../../src/formats/webp/riff-chunks.ts';
import {
  anmf,
  join,
  put,
  riffChunk,
  tiffOrientation,
  u32le,
  vp8x,
  webpFile,
} from '../containers.ts';
import { corpusFile, corpusFiles, headerOf } from '../header-of.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import { expectSamePicture } from './pixels.ts';

const blank = await sharp({ create: { width: 4, height: 2, channels: 3, background: '#c33' } })
  .webp()
  .toBuffer();
const bitstream = blank.subarray(FIRST_CHUNK);

const flags = { animation: 2, xmp: 4, exif: 8 };

const chunksOf = (webp: Buffer) =>
  [...iterateRiffChunks(webp, FIRST_CHUNK)].map(({ fourCc }) => fourCc);

describe('a cleaned WebP', () => {
  test.each([
    ['XMP', riffChunk('XMP ', join(SECRET))],
    ['unknown chunk', riffChunk('C2PA', join(SECRET))],
    ['padding', put(riffChunk('junk', join(SECRET)), 8 + SECRET.length, 0x53)],
  ])('has no %s', async (_, chunk) => {
    const file = webpFile(vp8x(flags.xmp, 4, 2), bitstream, chunk);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(chunksOf(cleaned)).toEqual(['VP8X', 'VP8 ', 'ZERO']);
    expect(cleaned[20]).toBe(0);
    expect(cleaned.at(-1)).toBe(0);
    await expectSamePicture(cleaned, file);
  });

  test.each(['', 'Exif\0\0'])(
    'has only the orientation of EXIF with the prefix "%s"',
    async (prefix) => {
      for (const orientation of [1, 3, 6]) {
        const tiff = join(prefix, tiffOrientation(orientation, 'MM'), SECRET);
        const exif = [riffChunk('EXIF', tiff), riffChunk('EXIF', tiffOrientation(8))];
        const file = webpFile(vp8x(flags.exif | flags.xmp, 4, 2), bitstream, ...exif);
        const cleaned = cleanInAnyChunks(file);
        expectNoSecret(file, cleaned);
        expect(headerOf(cleaned).orientation).toBe(orientation);
        expect(cleaned[20]).toBe(flags.exif);
        expect(chunksOf(cleaned)).toEqual(['VP8X', 'VP8 ', 'EXIF', 'ZERO']);
        expect((await sharp(cleaned).metadata()).orientation).toBe(orientation);
        await expectSamePicture(cleaned, file);
      }
    },
  );

  test('has valid EXIF if its flag is set, but there was no orientation', () => {
    const exif = riffChunk('EXIF', join('II*\0', SECRET));
    const cleaned = cleanInAnyChunks(webpFile(vp8x(flags.exif, 4, 2), bitstream, exif));
    expect(cleaned.subarray(-28, -18)).toEqual(tiffOrientation(1).subarray(0, 10));
  });

  test('has an empty EXIF chunk if its flag is set, but an orientation has no room', async () => {
    const file = webpFile(vp8x(flags.exif, 4, 2), bitstream, riffChunk('EXIF', join('S3CRET')));
    const cleaned = cleanInAnyChunks(file);
    expect(cleaned.subarray(-14)).toEqual(riffChunk('EXIF', Buffer.alloc(6)));
    await expectSamePicture(cleaned, file);
  });

  test('has no unknown chunks within its frames', async () => {
    const frame = anmf(100, bitstream, riffChunk('note', join(SECRET)));
    const anim = riffChunk('ANIM', join(u32le(0), '\0\0'));
    const file = webpFile(vp8x(flags.animation, 4, 2), anim, frame, frame);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(headerOf(cleaned).frames).toBe(2);
    await expectSamePicture(cleaned, file);
  });

  test('has zeros after its end', () => {
    const cleaned = cleanInAnyChunks(join(blank, SECRET));
    expect(cleaned).toEqual(join(blank, Buffer.alloc(SECRET.length)));
  });

  test('has the same pixels in all frames', async () => {
    for (const name of corpusFiles('webp-alpha', 'webp-animated', 'webp-lossless', 'webp-lossy')) {
      const file = corpusFile(name);
      await expectSamePicture(cleanInAnyChunks(file), file);
    }
  });
});

describe('rejects a WebP', () => {
  test.each([
    ['without its end', blank.subarray(0, -3), 'The WebP is truncated.'],
    ['with a chunk beyond its end', put(blank, 16, u32le(blank.length)), 'a chunk is too long.'],
    ['without a chunk', join('RIFF', u32le(0), 'WEBP'), 'too short.'],
  ])('%s', (_, file, message) => {
    for (const sizes of [[file.length], [1]]) {
      expect(() => clean(file, sizes)).toThrow(MetadataRemovalError);
      expect(() => clean(file, sizes)).toThrow(message);
    }
  });
});
