import { describe, expect, test, vi } from 'vitest';
import { times } from '../hostile/bombs/bomb.ts';
import { heifTables } from '../hostile/bombs/heif-tables.ts';
import { gif, jpeg, largestTables, pixel, png, webp } from '../hostile/bombs/largest-tables.ts';
import { withStepCounter } from '../support/count-steps.ts';
import { box, fullBox } from '../support/images/heif-file.ts';
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
} from './containers.ts';
import { corpusFile, headerOf, testVerdicts } from './header-of.ts';

/** The main process reads headers, and serves no other request at the same time. */

const junk = riffChunk('junk', Buffer.alloc(0));
const frame = join(gifControl(1), gifImage(0, 0, 1, 1));
const avif = corpusFile('avif/libavif__white_1x1.avif');

/** The AVIF with boxes inserted at the start of the meta box, or of its child `iprp`. */
function withBox(parent: 'meta' | 'iprp', ...boxes: readonly Buffer[]): Buffer {
  const more = join(...boxes);
  const at = avif.indexOf(parent, 0, 'latin1') + (parent === 'meta' ? 8 : 4);
  const longer = join(avif.subarray(0, at), more, avif.subarray(at));
  for (const type of new Set(['meta', parent])) {
    const size = longer.indexOf(type, 0, 'latin1') - 4;
    longer.writeUInt32BE(longer.readUInt32BE(size) + more.length, size);
  }
  return longer;
}

const associations = (count: number): Buffer =>
  fullBox('ipma', 0, 0, u32be(count), times(count, join(u16be(9), 0)));

function locations(items: number, extents: number): Buffer {
  const item = join(...[9, 1, extents].map(u16be), Buffer.alloc(2 * extents));
  const primary = join(...[1, 0, 1, 9].map(u16be));
  return fullBox('iloc', 0, 0, u16be(0x1100), u16be(items), primary, times(items - 1, item));
}

testVerdicts('too many are rejected', 'corrupt', {
  'chunks in a webp': webp(0, pixel, times(200_000, junk)),
  'chunks in a frame of a webp': webp(2, anmf(1, pixel, times(200_000, junk))),
  'chunks in all frames of a webp': webp(2, times(100, anmf(1, pixel, times(2_000, junk)))),
  'chunks in a png': afterIhdr(png, times(105_000, pngChunk('teST'))),
  'markers in a jpeg': afterSoi(jpeg, times(20_000, jpegSegment(0xfe, ''))),
  'comments in a gif': gif(times(200_000, Buffer.from([0x21, 0xfe, 0]))),
  'loop extensions in a gif': gif(times(200_000, gifLoop(1))),
  'frames and control extensions in a gif': gif(times(100_000, frame)),
  'associations in an avif': withBox('iprp', associations(20_001)),
  'associations in several boxes': withBox('iprp', ...[1, 2, 3].map(() => associations(7_000))),
  'located items in an avif': withBox('meta', locations(20_001, 1)),
  'extents of located items in an avif': withBox('meta', locations(11, 10_001)),
  'boxes in an avif': join(avif.subarray(0, 32), times(20_001, box('free')), avif.subarray(32)),
});

testVerdicts(
  'a number below the limit in a HEIF file is accepted',
  { widthPx: 1, heightPx: 1 },
  {
    associations: withBox('iprp', associations(19_000)),
    'located items': withBox('meta', locations(19_000, 1)),
  },
);

test('accepts an image with the largest number of frames that settings allow', () => {
  expect(headerOf(gif(times(50_000, frame))).frames).toBe(50_001);
  expect(headerOf(webp(2, times(50_000, anmf(1, pixel)))).frames).toBe(50_000);
});

/** Less than 50 ms of optimized code. */
const MAX_STEPS = 8_000_000;

/** The limit for a HEIF file of some kilobytes. */
const MAX_HEIF_STEPS = 3_000_000;

test('the counter of steps counts each round of a loop', async () => {
  const load = () => import('../../src/formats/containers.ts');
  await withStepCounter(load, ({ readImageHeader }, countSteps) => {
    const file = join(gifScreen(1, 1), 0x21, 0xfe, times(1_000, Buffer.of(1, 5)), 0);
    expect(countSteps(() => unlessCorrupt(() => readImageHeader(file)))).toBeGreaterThan(1_000);
  });
});

describe('parsing a file whose counts multiply:', () => {
  const files = [
    ...Object.entries(largestTables).map(([name, make]) => [name, MAX_STEPS, make] as const),
    ...Object.entries(heifTables).map(([name, make]) => [name, MAX_HEIF_STEPS, make] as const),
  ];
  test.each(files)('%s takes less than %i steps', async (_, maxSteps, make) => {
    const file = make();
    const load = async () => ({
      ...(await import('../../src/formats/byte-reader.ts')),
      ...(await import('../../src/formats/containers.ts')),
    });
    await withStepCounter(load, ({ ByteReader, containerOf }, countSteps) => {
      const slice = vi.spyOn(ByteReader.prototype, 'slice');
      const { readHeader, prepare } = containerOf(file) ?? expect.fail('not an image');
      for (const work of [() => readHeader(file), () => prepare(file, 1)]) {
        const steps = countSteps(() => unlessCorrupt(work));
        expect(steps).toBeLessThan(maxSteps);
      }
      const bytes = slice.mock.calls.reduce((sum, [start, end]) => sum + end - start, 0);
      expect(bytes).toBeLessThan(4 * file.length);
      slice.mockRestore();
    });
  });
});

function unlessCorrupt(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    expect(error).toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
  }
}
