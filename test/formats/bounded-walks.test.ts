import { describe, expect, test } from 'vitest';
import { box, fullBox, u16be } from '../support/images/heif-file.ts';
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
  u32be,
  vp8x,
  webpFile,
} from './containers.ts';
import { corpusFile, factsOf, verdictOn } from './facts-of.ts';

/**
 * Headers are read where all requests are served: what is in them must not keep anybody waiting. Each
 * of these, made as large as an original may be, took 0.1 to 0.4 s.
 */

function times(count: number, ...parts: readonly Uint8Array[]): Buffer {
  const part = join(...parts);
  return Buffer.alloc(count * part.length, part);
}

const dot = riffChunk('VP8L', Buffer.from('2f00000000888808', 'hex'));
const junk = riffChunk('junk', Buffer.alloc(0));
const gif = (...blocks: readonly Uint8Array[]): Buffer =>
  join(gifScreen(1, 1), ...blocks, gifImage(0, 0, 1, 1), ';');

describe('more than any real file has', () => {
  test.each([
    ['chunks in a webp', webpFile(vp8x(0, 1, 1), dot, times(400_000, junk))],
    ['chunks in a frame of a webp', webpFile(vp8x(2, 1, 1), anmf(1, dot, times(400_000, junk)))],
    [
      'chunks in all frames of a webp',
      webpFile(vp8x(2, 1, 1), times(100, anmf(1, dot, times(4_000, junk)))),
    ],
    [
      'chunks in a png',
      afterIhdr(
        corpusFile('png-8/imagers__debug_triangle_corners_widescreen.png'),
        times(210_000, pngChunk('teST')),
      ),
    ],
    [
      'markers in a jpeg',
      afterSoi(corpusFile('jpeg-gray/sharp__concert.jpg'), times(20_000, jpegSegment(0xfe, ''))),
    ],
    ['comments in a gif', gif(times(400_000, Buffer.from([0x21, 0xfe, 0])))],
    ['loop extensions in a gif', gif(times(400_000, gifLoop(1)))],
    [
      'frames and control extensions in a gif',
      gif(times(200_000, gifControl(1), gifImage(0, 0, 1, 1))),
    ],
  ])('%s: corrupt', (_, bytes) => {
    expect(verdictOn(bytes)).toBe('corrupt');
  });

  test('as many frames as a configuration may allow are none too many', () => {
    const frames = times(100_000, gifControl(1), gifImage(0, 0, 1, 1));
    expect(factsOf(gif(frames)).frames).toBe(100_001);
    const webp = webpFile(vp8x(2, 1, 1), times(100_000, anmf(1, dot)));
    expect(factsOf(webp).frames).toBe(100_000);
  });

  const avif = corpusFile('avif/libavif__white_1x1.avif');
  /** The file with a box of the meta box, or of its child `iprp`, put before the others. */
  const withBox = (parent: 'meta' | 'iprp', ...boxes: readonly Buffer[]): Buffer => {
    const more = join(...boxes);
    const at = avif.indexOf(parent, 0, 'latin1') + (parent === 'meta' ? 8 : 4);
    const longer = join(avif.subarray(0, at), more, avif.subarray(at));
    for (const type of parent === 'meta' ? ['meta'] : ['meta', 'iprp']) {
      const size = longer.indexOf(type, 0, 'latin1') - 4;
      longer.writeUInt32BE(longer.readUInt32BE(size) + more.length, size);
    }
    return longer;
  };
  const associations = (count: number): Buffer =>
    fullBox('ipma', 0, 0, u32be(count), times(count, u16be(9), Buffer.of(0)));
  const locations = (items: number, extents: number): Buffer => {
    const item = join(u16be(9), u16be(1), u16be(extents), Buffer.alloc(2 * extents));
    const primary = join(u16be(1), u16be(0), u16be(1), Buffer.of(0, 9));
    return fullBox('iloc', 0, 0, u16be(0x1100), u16be(items), primary, times(items - 1, item));
  };

  test.each([
    ['associations in an avif', withBox('iprp', associations(20_001))],
    ['associations in several boxes', withBox('iprp', ...[1, 2, 3].map(() => associations(7_000)))],
    ['located items in an avif', withBox('meta', locations(20_001, 1))],
    ['extents of located items in an avif', withBox('meta', locations(11, 10_001))],
    ['boxes in an avif', join(avif.subarray(0, 32), times(20_001, box('free')), avif.subarray(32))],
  ])('%s: corrupt', (_, bytes) => {
    expect(verdictOn(bytes)).toBe('corrupt');
  });

  test.each([
    ['associations', withBox('iprp', associations(19_000))],
    ['located items', withBox('meta', locations(19_000, 1))],
  ])('nearly as many %s are none too many', (_, bytes) => {
    expect(factsOf(bytes)).toMatchObject({ widthPx: 1, heightPx: 1 });
  });
});
