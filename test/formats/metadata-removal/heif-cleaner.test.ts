import { describe, expect, test } from 'vitest';
import { readImageHeader } from '../../../src/formats/containers.ts';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import {
  box,
  createHeif,
  extractImage,
  fullBox,
  HEIC,
  type HeifItem,
  heicSample,
} from '../../support/images/heif-file.ts';
import { join, put, u16be, u32be } from '../containers.ts';
import { corpusFile, corpusFiles } from '../header-of.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import { createMovie, handlerBox, TIME, videoEntry } from './movies.ts';
import { expectSamePicture } from './pixels.ts';

const picture = extractImage(heicSample('caps.heic'));

const metadata = (type: string): HeifItem => ({
  type,
  data: join(u32be(6), 'Exif\0\0', SECRET),
  properties: [],
  references: [['cdsc', [1]]],
});

/** An item index with one metadata item, at an offset in the file or in its own `idat`. */
function itemIndex(method: 0 | 1, offset: number, entry = itemEntry(2, 'Exif')): Buffer {
  const location = join(
    u16be(1),
    u16be(method),
    u16be(0),
    u16be(1),
    u32be(offset),
    u32be(SECRET.length),
  );
  return fullBox(
    'meta',
    0,
    0,
    fullBox('hdlr', 0, 0, u32be(0), 'pict', Buffer.alloc(13)),
    fullBox('pitm', 0, 0, u16be(2)),
    fullBox('iinf', 0, 0, u16be(1), entry),
    fullBox('iloc', 1, 0, u16be(0x4400), u16be(1), location),
    box('idat', 'before', SECRET, 'after'),
  );
}

/** An item index with EXIF of many extents, each of the complete `idat`. */
function overlappingItems(extents: number): Buffer {
  const lengths = Array<Buffer>(extents).fill(u32be(extents));
  const location = join(u16be(1), u16be(1), u16be(0), u16be(extents), ...lengths);
  return fullBox(
    'meta',
    0,
    0,
    fullBox('iinf', 0, 0, u16be(1), itemEntry(2, 'Exif')),
    fullBox('iloc', 1, 0, u16be(0x0400), u16be(1), location),
    box('idat', Buffer.alloc(extents)),
  );
}

const itemEntry = (version: number, type: string) =>
  fullBox('infe', version, 0, u16be(1), u16be(0), type, 'name\0');

const fileType = box('ftyp', 'heic', u32be(0), 'mif1heic');

describe('a cleaned HEIC or AVIF', () => {
  test.each(['Exif', 'mime', 'uri '])('has no items of type %s', (type) => {
    const file = createHeif([metadata(type), picture, metadata(type)], { ...HEIC, primary: 2 });
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes(type)).toBe(false);
    expect(cleaned.includes(Buffer.from(picture.data))).toBe(true);
    expect(readImageHeader(cleaned)).toEqual(readImageHeader(file));
  });

  test('has no metadata items within its index', () => {
    const file = join(fileType, itemIndex(1, 6));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect([cleaned.includes('before\0'), cleaned.includes('\0after')]).toEqual([true, true]);
    const byFile = join(fileType, itemIndex(0, file.indexOf(SECRET)));
    expectNoSecret(byFile, cleanInAnyChunks(byFile));
  });

  test('has no items with entries of version 0, which have a media type', () => {
    const entry = fullBox('infe', 0, 0, u16be(1), u16be(0), `\0application/rdf+xml\0`);
    const file = join(fileType, itemIndex(1, 6, entry));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes('rdf')).toBe(false);
  });

  test.each([
    ['user data', { extraBoxes: [box('udta', SECRET)] }],
    [
      'vendor boxes',
      { extraBoxes: [box('uuid', Buffer.alloc(16, 7), SECRET), box('mcvr', SECRET)] },
    ],
    ['XML', { extraBoxes: [fullBox('xml ', 0, 0, SECRET)] }],
  ])('has no %s in its index', (_, choices) => {
    const file = createHeif([picture], { ...HEIC, ...choices });
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(readImageHeader(cleaned)).toEqual(readImageHeader(file));
  });

  test.each(['udes', 'crtt', 'mdft', 'altt'])(
    'has no property of type %s, and keeps the indexes of the others',
    (type) => {
      const properties = [fullBox(type, 0, 0, SECRET), ...picture.properties];
      const file = createHeif([{ ...picture, properties }], HEIC);
      const cleaned = cleanInAnyChunks(file);
      expectNoSecret(file, cleaned);
      expect(readImageHeader(cleaned)).toEqual(readImageHeader(file));
    },
  );

  test('has no content credentials, and zeros for bytes that are not in a box', () => {
    const file = join(createHeif([picture], HEIC), box('uuid', Buffer.alloc(16, 7), SECRET), 'abc');
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.subarray(-3)).toEqual(Buffer.alloc(3));
  });

  test.each(['idat', 'iloc', 'iinf'])('has no second %s in its index', (type) => {
    const extraBoxes = [box('idat'), fullBox(type, 0, 0, SECRET)];
    const file = createHeif([picture], { ...HEIC, extraBoxes });
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(readImageHeader(cleaned)).toEqual(readImageHeader(file));
  });

  test('has no name of its handler', () => {
    const handler = handlerBox('\0\0\0\0', 'pict', SECRET);
    const file = join(fileType, fullBox('meta', 0, 0, handler));
    expectNoSecret(file, cleanInAnyChunks(file));
  });

  test('that is a sequence has no times, and no metadata items of its tracks', () => {
    const frames = {
      handler: 'pict',
      chunks: [[Buffer.from('frame'), Buffer.from(SECRET)]],
      entry: videoEntry('', ''),
    };
    const sequence = (offset: number) => {
      const movie = createMovie([{ ...frames, boxes: [itemIndex(0, offset)] }]);
      return put(movie, 8, 'msf1', u32be(0), 'msf1hevc');
    };
    const file = sequence(sequence(0).lastIndexOf(SECRET));
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes('frame\0')).toBe(true);
    expect([file, cleaned].map((each) => each.includes(u32be(TIME)))).toEqual([true, false]);
  });

  test('of phones and encoders has the same pictures', async () => {
    for (const name of ['gps.heic', 'turned.heic', 'grid.heic', 'burst.heic', 'alpha.heic']) {
      const file = heicSample(name);
      const cleaned = cleanInAnyChunks(file);
      expect(readImageHeader(cleaned)).toEqual(readImageHeader(file));
      for (const text of ['Exif', 'Google']) expect(cleaned.includes(text)).toBe(false);
    }
    for (const name of corpusFiles('avif')) {
      const file = corpusFile(name);
      await expectSamePicture(clean(file).bytes, file);
    }
  });
});

describe('rejects a HEIC or AVIF', () => {
  const file = createHeif([picture, metadata('Exif')], HEIC);
  const metaAt = file.indexOf('meta', 0, 'latin1') - 4;
  const metaEnd = metaAt + file.readUInt32BE(metaAt);
  const meta = file.subarray(metaAt, metaEnd);
  const early = join(fileType, box('mdat', SECRET));
  test.each([
    [
      'with metadata before its index',
      join(early, itemIndex(0, early.indexOf(SECRET))),
      'Metadata comes before the index of the file.',
    ],
    [
      'with metadata across the end of its index',
      join(fileType, itemIndex(0, fileType.length + itemIndex(0, 0).length - 4), SECRET),
      'Metadata comes before the index of the file.',
    ],
    [
      'with an item within an item',
      put(
        join(fileType, itemIndex(1, 0)),
        join(fileType, itemIndex(1, 0)).indexOf('iloc') + 14,
        u16be(2),
      ),
      'An item is part of another item.',
    ],
    [
      'with items that overlap in its index',
      join(fileType, overlappingItems(1_000)),
      'Items of metadata overlap.',
    ],
    ['with two indexes', join(file, meta), 'The HEIC is damaged: it has two indexes.'],
    [
      'with a long index',
      createHeif([picture], { ...HEIC, extraBoxes: [box('free', Buffer.alloc(2 ** 20))] }),
      'The index of the file is too long.',
    ],
    [
      'without an index',
      join(fileType, box('mdat', 'data')),
      'The HEIC is damaged: it has no index.',
    ],
    ['with a damaged index', put(file, metaAt + 12, u32be(0xfff_ffff)), 'The HEIC is damaged.'],
    [
      'that is an AVIF with an open index',
      put(put(file, metaAt, u32be(0)), 8, 'avif'),
      'The AVIF is damaged: a box without a size.',
    ],
    [
      'in the minimized form',
      join(fileType, box('mini', SECRET)),
      'Files with a box of type mini are not supported.',
    ],
  ])('%s', (_, refused, message) => {
    for (const sizes of [[refused.length], [4096]]) {
      expect(() => clean(refused, sizes)).toThrow(new MetadataRemovalError(message));
    }
  });

  test('accepts pictures before their index', () => {
    const data = box('mdat', picture.data);
    const start = BigInt(fileType.length + 8);
    const extents = [[start, BigInt(picture.data.length)]] as const;
    const moved = createHeif([{ ...picture, data: Buffer.alloc(0) }], { ...HEIC, extents });
    const at = moved.indexOf('meta', 0, 'latin1') - 4;
    const swapped = join(fileType, data, moved.subarray(at));
    expect(cleanInAnyChunks(swapped).equals(swapped)).toBe(true);
  });
});
