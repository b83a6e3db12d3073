import { expect, test } from 'vitest';
import { readExifOrientation } from '../../src/formats/exif-block.ts';
import { join, tiffOrientation, u16le } from './containers.ts';

/** A little-endian TIFF block of entries: tag, type, count and value in 16-bit words. */
function tiff(...entries: readonly (readonly number[])[]): Buffer {
  return join('II', u16le(42, 8, 0, entries.length), ...entries.map((words) => u16le(...words)));
}

const orientation = (type: number, value: number, count = 1) => [0x0112, type, count, 0, value, 0];

test.each(['II', 'MM'] as const)(
  'reads the orientation from EXIF in the byte order %s, and 1 if it is truncated anywhere',
  (order) => {
    const block = tiffOrientation(6, order);
    expect(readExifOrientation(block)).toBe(6);
    for (let length = 0; length < block.length; length += 1) {
      expect([1, 6]).toContain(readExifOrientation(block.subarray(0, length)));
    }
  },
);

test.each([
  ['a short', tiff(orientation(3, 6)), 6],
  ['a byte', tiff(orientation(1, 6)), 1],
  ['a long', tiff(orientation(4, 6)), 1],
  ['a signed short', tiff(orientation(8, 6)), 1],
  ['two shorts', tiff(orientation(3, 6, 2)), 1],
  ['text', tiff(orientation(2, 6)), 1],
  ['a number above 8', tiff(orientation(3, 9)), 1],
  ['the first of two', tiff(orientation(3, 6), orientation(3, 3)), 6],
  ['the first of two, of another type', tiff(orientation(99, 3), orientation(3, 6)), 1],
  ['one after another tag', tiff([0x010f, 2, 1, 0, 0, 0], orientation(3, 6)), 6],
  ['another tag', tiff([0x010f, 2, 1, 0, 0, 0]), 1],
  ['no entries', tiff(), 1],
  ['a block that is not TIFF', join('Exif\0\0XX'), 1],
  ['a directory past the end', join('II', u16le(42, 8000, 0)), 1],
])('reads the orientation, or 1, from %s', (_, block, expected) => {
  expect(readExifOrientation(block)).toBe(expected);
});
