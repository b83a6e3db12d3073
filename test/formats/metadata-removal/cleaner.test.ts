import { describe, expect, test } from 'vitest';
import {
  createMetadataCleaner,
  MetadataRemovalError,
} from '../../../src/formats/metadata-removal/cleaner.ts';
import { readVideo } from '../../support/videos.ts';
import { join, jpegSegment, u32be } from '../containers.ts';
import { corpusFile, corpusFiles } from '../header-of.ts';

describe('a format is stored unchanged', () => {
  test.each([
    ['an empty file', Buffer.alloc(0)],
    ['a byte', Buffer.from([0xff])],
    ['text', Buffer.from('free text, and ftyp')],
    ['PDF', Buffer.from('%PDF-1.7\n')],
    ['TIFF', Buffer.from('II*\0\x08\0\0\0', 'latin1')],
    ['a raw picture of Canon', join(u32be(24), 'ftypcrx ', u32be(1), 'crx isom')],
    ['WebM', readVideo('clip-vp8.webm')],
    ['Matroska', readVideo('clip-av1.mkv')],
    ['Ogg', readVideo('voice.ogg')],
    ['SVG', corpusFile(corpusFiles('svg')[0] ?? '')],
  ])('%s', (_, file) => {
    expect(createMetadataCleaner(file.subarray(0, 4096))).toBeUndefined();
  });
});

test('does not modify the chunks of the caller', () => {
  const file = corpusFile('jpeg-gps/libavif__paris_exif_xmp_icc.jpg');
  const chunk = Buffer.from(file);
  const cleaner = createMetadataCleaner(chunk);
  cleaner?.write(chunk);
  expect(cleaner?.hasRemoved).toBe(true);
  expect(chunk.equals(file)).toBe(true);
});

test('fails again after a failure', () => {
  const cleaner = createMetadataCleaner(Buffer.from('GIF89a')) ?? expect.fail('not supported');
  expect(cleaner.write(Buffer.from('GIF89a\x01\0\x01\0\0\0\0', 'latin1')).length).toBe(1);
  expect(cleaner.write(Buffer.alloc(0))).toEqual([]);
  for (const attempt of [() => cleaner.write(Buffer.from('P')), () => cleaner.end()]) {
    expect(attempt).toThrow(new MetadataRemovalError('The GIF is damaged: unknown block.'));
  }
});

test('returns one piece for each chunk, regardless of its number of parts', () => {
  const comments = Array<Buffer>(10_000).fill(jpegSegment(0xfe, 'x'));
  const file = join(Buffer.of(0xff, 0xd8), ...comments);
  const cleaner = createMetadataCleaner(file) ?? expect.fail('format not supported');
  const pieces = [file.subarray(0, 30_000), file.subarray(30_000)].map((chunk) =>
    cleaner.write(chunk),
  );
  expect(pieces.map(({ length }) => length)).toEqual([1, 1]);
  expect(cleaner.hasRemoved).toBe(true);
});
