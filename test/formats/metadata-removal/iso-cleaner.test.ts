import { describe, expect, test } from 'vitest';
import { MetadataRemovalError } from '../../../src/formats/metadata-removal/cleaner.ts';
import { readIsoIndex } from '../../../src/formats/video/iso-index.ts';
import { box, fullBox } from '../../support/images/heif-file.ts';
import { readVideo } from '../../support/videos.ts';
import { join, put, u16be, u32be } from '../containers.ts';
import { clean, cleanInAnyChunks, expectNoSecret, SECRET } from './clean.ts';
import {
  createMovie,
  handlerBox,
  type MovieOptions,
  type MovieTrack,
  TIME,
  u64be,
  videoEntry,
} from './movies.ts';

const sample = (text: string, length: number) =>
  Buffer.from(text.repeat(length)).subarray(0, length);

const pictures: MovieTrack = {
  handler: 'vide',
  chunks: [[sample('picture', 500), sample('picture', 30)], [sample('picture', 7_000)]],
  entry: videoEntry('', ''),
};

/** A track of positions, as in files of action cameras and phones. */
const positions = (choices: Partial<MovieTrack> = {}): MovieTrack => ({
  handler: 'meta',
  chunks: [[Buffer.from(SECRET), sample(SECRET, 60)], [sample(SECRET, 100)], []],
  entry: box('mebx', Buffer.alloc(6), u16be(1), box('keys', box('\0\0\0\x01', SECRET))),
  ...choices,
});

const xmpUuid = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex');
const udta = box('udta', box('\xa9xyz', u16be(SECRET.length), u16be(0), SECRET), u32be(0));
const meta = fullBox(
  'meta',
  0,
  0,
  handlerBox('mhlr', 'mdta', 'x'),
  box('ilst', box('data', SECRET)),
);

const movieOf = (file: Buffer) => {
  const at = file.indexOf('moov', 0, 'latin1') - 4;
  return file.subarray(at + 8, at + file.readUInt32BE(at));
};

const times = (file: Buffer) => file.includes(u32be(TIME));

describe('a cleaned movie', () => {
  test.each<[string, MovieOptions & { readonly tracks?: readonly MovieTrack[] }]>([
    ['user data of the movie', { boxes: [udta] }],
    ['metadata of the movie', { boxes: [meta] }],
    ['QuickTime metadata of the movie', { boxes: [box('meta', meta.subarray(12))] }],
    ['positions of a dash camera', { boxes: [box('gps ', u32be(0), SECRET)] }],
    ['user data of a track', { tracks: [{ ...pictures, boxes: [udta] }] }],
    ['metadata of a track', { tracks: [{ ...pictures, boxes: [meta] }] }],
    ['metadata of the file', { fileBoxes: [meta] }],
    ['XMP', { fileBoxes: [box('uuid', xmpUuid, SECRET)] }],
    [
      'vendor boxes',
      { fileBoxes: [box('uuid', Buffer.alloc(16, 7), SECRET), box('mcvr', SECRET)] },
    ],
    ['content of empty space', { fileBoxes: [box('free', SECRET), box('skip', SECRET)] }],
    ['large cover pictures', { boxes: [box('udta', SECRET, Buffer.alloc(70_000, 1), SECRET)] }],
  ])('has no %s', (_, { tracks = [pictures], ...options }) => {
    for (const index of ['first', 'last'] as const) {
      const file = createMovie(tracks, { ...options, index });
      const cleaned = cleanInAnyChunks(file);
      expectNoSecret(file, cleaned);
      expect(readIsoIndex(movieOf(cleaned))).toEqual(readIsoIndex(movieOf(file)));
    }
  });

  test.each([0, 1] as const)('has no times in headers of version %i', (version) => {
    const file = createMovie([pictures], { version });
    const cleaned = cleanInAnyChunks(file);
    expect([times(file), times(cleaned)]).toEqual([true, false]);
    expect(readIsoIndex(movieOf(cleaned))).toEqual(readIsoIndex(movieOf(file)));
  });

  test('has no names of encoders, manufacturers and handlers', () => {
    const file = createMovie([{ ...pictures, entry: videoEntry('GoPr', 'GoPro AVC encoder') }]);
    const cleaned = cleanInAnyChunks(file);
    for (const name of ['GoPr', 'Core Media', 'appl', 'Data']) {
      expect([file.includes(name), cleaned.includes(name)]).toEqual([true, false]);
    }
  });

  test.each(["Planar Y'CbCr 8-bit 4:2:0", 'Sorenson H263'])(
    'keeps the encoder name %s, by which ffmpeg chooses a decoder',
    (name) => {
      const cleaned = cleanInAnyChunks(createMovie([{ ...pictures, entry: videoEntry('', name) }]));
      expect(cleaned.includes(name)).toBe(true);
    },
  );

  test.each([
    ['meta', {}],
    ['camm', { offsets: 'co64' }],
    ['meta', { sizes: 'stz2' }],
    ['mdta', { sizes: 'constant', chunks: [[Buffer.from(SECRET), Buffer.from(SECRET)]] }],
  ] as const)('has zeros for the samples of a track of type %s with %o', (handler, choices) => {
    const file = createMovie([pictures, positions({ handler, ...choices }), pictures]);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    const first = file.indexOf(sample('picture', 500));
    const second = file.lastIndexOf(sample('picture', 7_000));
    expect(cleaned.subarray(first, first + 7_530)).toEqual(file.subarray(first, first + 7_530));
    expect(cleaned.subarray(second - 530).equals(file.subarray(second - 530))).toBe(true);
    expect(readIsoIndex(movieOf(cleaned))).toEqual(readIsoIndex(movieOf(file)));
  });

  test('has no positions in the subtitles of a drone', () => {
    const track = positions({ handler: 'sbtl', name: 'DJI.Subtitle' });
    const file = createMovie([pictures, track]);
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(readIsoIndex(movieOf(cleaned))).toEqual(readIsoIndex(movieOf(file)));
    expect(() => clean(createMovie([pictures, track], { index: 'last' }))).toThrow(
      new MetadataRemovalError('Timed metadata comes before the index of the file.'),
    );
  });

  test('has no reel name in its timecodes', () => {
    const fields = join(Buffer.alloc(6), u16be(1), u32be(0), u32be(1), u32be(10), u32be(1), 10, 0);
    const entry = box('tmcd', fields, box('name', u16be(SECRET.length), u16be(0), SECRET));
    const timecodes = { handler: 'tmcd', chunks: [[u32be(36_000)]], entry };
    const file = createMovie([pictures, timecodes], { index: 'last' });
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes(fields)).toBe(true);
  });

  test('has no metadata items, at any location in its index', () => {
    const file = createMovie([{ ...pictures, chunks: [[Buffer.from(SECRET)]] }], {
      boxes: [itemIndex(0)],
    });
    const start = file.lastIndexOf(SECRET);
    const located = createMovie([{ ...pictures, chunks: [[Buffer.from(SECRET)]] }], {
      boxes: [itemIndex(start)],
    });
    expectNoSecret(located, cleanInAnyChunks(located));
  });

  test.each([
    [
      'a size of 64 bits',
      (payload: Buffer) => join(u32be(1), 'mdat', u64be(16 + payload.length), payload),
    ],
    ['no size', (payload: Buffer) => join(u32be(0), 'mdat', payload)],
    ['empty space before it', (payload: Buffer) => join(box('wide'), box('mdat', payload))],
  ])('keeps media data with %s', (_, dataHeader) => {
    const file = createMovie([pictures, positions()], { dataHeader });
    const cleaned = cleanInAnyChunks(file);
    expectNoSecret(file, cleaned);
    expect(cleaned.includes(sample('picture', 7_000))).toBe(true);
  });

  test('keeps timecodes, subtitles and everything else that is played', () => {
    const others = ['tmcd', 'sbtl', 'soun'].map((handler) => positions({ handler }));
    const file = createMovie([pictures, ...others], { index: 'last' });
    const data = file.subarray(0, file.indexOf('moov', 0, 'latin1'));
    expect(cleanInAnyChunks(file).subarray(0, data.length).equals(data)).toBe(true);
  });

  test('has zeros after its last box', () => {
    const file = createMovie([pictures]);
    const cleaned = cleanInAnyChunks(join(file, u32be(0), u32be(0), SECRET));
    expect(cleaned.subarray(file.length)).toEqual(Buffer.alloc(8 + SECRET.length));
    expect(cleanInAnyChunks(join(file, 'abc')).subarray(file.length)).toEqual(Buffer.alloc(3));
  });

  test.each([
    'clip-h264.mp4',
    'clip-faststart-601-full.mp4',
    'clip-fragmented.mp4',
    'phone-portrait.mov',
  ])('written by ffmpeg has the same tracks and media data, and no encoder: %s', (name) => {
    const file = readVideo(name);
    const cleaned = cleanInAnyChunks(file);
    expect(readIsoIndex(movieOf(cleaned))).toEqual(readIsoIndex(movieOf(file)));
    const at = file.indexOf('mdat', 0, 'latin1') - 4;
    const end = at + file.readUInt32BE(at);
    expect(cleaned.subarray(at, end).equals(file.subarray(at, end))).toBe(true);
    for (const text of ['Lavf', 'Lavc', 'Handler', 'FFMP'])
      expect(movieOf(cleaned).includes(text)).toBe(false);
  });
});

describe('rejects a movie', () => {
  const movie = createMovie([pictures]);
  const fragment = (id: number) => box('moof', box('traf', fullBox('tfhd', 0, 0, u32be(id))));
  const empty = createMovie([{ ...pictures, chunks: [] }, positions({ chunks: [] })]);
  const moovAt = movie.indexOf('moov', 0, 'latin1') - 4;
  test.each([
    [
      'with positions before their index',
      createMovie([pictures, positions()], { index: 'last' }),
      'Timed metadata comes before the index of the file.',
    ],
    [
      'with fragments of positions',
      join(empty, fragment(2)),
      'Timed metadata in fragments is not supported.',
    ],
    [
      'without an index',
      join(movie.subarray(0, moovAt), box('mdat', SECRET)),
      'The MP4 is damaged: it has no index.',
    ],
    [
      'with two movies',
      join(movie, movie.subarray(moovAt)),
      'The MP4 is damaged: it has two movies.',
    ],
    [
      'with a compressed movie',
      join(movie.subarray(0, moovAt), box('moov', box('cmov'))),
      'Files with a box of type cmov are not supported.',
    ],
    [
      'with a box that exceeds its parent',
      put(movie, moovAt + 8, u32be(0xfff_ffff)),
      'The MP4 is damaged: a box is too long.',
    ],
    ['that ends within a box', movie.subarray(0, -1), 'The MP4 is truncated.'],
    ['that ends within a header', join(movie, u32be(100), 'mdat'), 'The MP4 is truncated.'],
    [
      'with a movie without a size',
      put(movie, moovAt, u32be(0)),
      'The MP4 is damaged: a box without a size.',
    ],
    [
      'with indexes of more empty items than a picture has',
      createMovie([pictures], { boxes: Array(5).fill(emptyItems(20_001)) }),
      'The metadata is in too many pieces.',
    ],
    [
      'with indexes of metadata that alternate with media data',
      join(movie, ...Array(200).fill(join(itemIndex(0xffff_fff0), box('mdat', 'x')))),
      'The file has too many indexes of metadata.',
    ],
    [
      'with larger sample tables than any phone writes',
      createMovie([positions({ chunks: [Array(270_000).fill(Buffer.of(1))] })]),
      'The file has too much timed metadata.',
    ],
  ])('%s', (_, file, message) => {
    for (const sizes of [[file.length], [file.length > 100_000 ? 4096 : 1]]) {
      expect(() => clean(file, sizes)).toThrow(new MetadataRemovalError(message));
    }
  });

  test('accepts fragments of other tracks', () => {
    expect(clean(join(empty, fragment(1))).bytes).toHaveLength(empty.length + fragment(1).length);
  });
});

function itemIndex(offset: number): Buffer {
  const location = join(u16be(1), u16be(0), u16be(1), u32be(offset), u32be(SECRET.length));
  return exifIndex(fullBox('iloc', 0, 0, u16be(0x4400), u16be(1), location));
}

/** An index with one EXIF item in empty extents, which take no bytes in the index either. */
function emptyItems(extents: number): Buffer {
  const location = join(u16be(1), u16be(0), u32be(0x7fff_ffff), u16be(extents));
  return exifIndex(fullBox('iloc', 0, 0, u16be(0x0040), u16be(1), location));
}

function exifIndex(locations: Buffer): Buffer {
  const entry = fullBox('infe', 2, 0, u16be(1), u16be(0), 'Exif', 0);
  return fullBox('meta', 0, 0, fullBox('iinf', 0, 0, u16be(1), entry), locations);
}
