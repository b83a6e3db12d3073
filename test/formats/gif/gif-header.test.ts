import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { gifControl, gifImage, gifLoop, gifScreen, join } from '../containers.ts';
import { corpusFile, factsOf, plainStill, testCorrupt, verdictOn } from '../facts-of.ts';

const screen = gifScreen(4, 3);
const image = gifImage(0, 0, 4, 3);
const trailer = join(0x3b);
const comment = join(0x21, 0xfe, 5, 'hello', 0);
const application = (name: string) => join(0x21, 0xff, 11, name, 3, 1, 0, 0, 0);

test('a bare gif is clean', () => {
  expect(verdictOn(join(screen, gifControl(7), image, trailer))).toEqual({
    format: 'gif',
    widthPx: 4,
    heightPx: 3,
    ...plainStill,
    isRewritable: true,
  });
});

test('a gif needs no trailer', () => {
  expect(factsOf(join(screen, image))).toMatchObject({ frames: 1, isClean: true });
});

test.each([
  ['a comment', join(screen, comment, image, trailer)],
  ['a comment at the end', join(screen, image, comment, trailer)],
  ['plain text', join(screen, image, 0x21, 0x01, 12, Buffer.alloc(12), 1, 'x', 0, trailer)],
  ['an unknown extension', join(screen, 0x21, 0x2a, 1, 'x', 0, image, trailer)],
  ['XMP', join(screen, 0x21, 0xff, 11, 'XMP DataXMP', 1, 'x', 0, image, trailer)],
  ['an ICC profile', join(screen, 0x21, 0xff, 11, 'ICCRGBG1012', 1, 'x', 0, image, trailer)],
  ['a loop extension of another name', join(screen, application('NETSCAPE9.9'), image, trailer)],
  [
    'a loop extension with more in it',
    join(screen, 0x21, 0xff, 11, 'NETSCAPE2.0', 3, 1, 0, 0, 1, 'x', 0, image, trailer),
  ],
  [
    'a control extension with more in it',
    join(screen, 0x21, 0xf9, 4, 0, 1, 0, 0, 1, 'x', 0, image),
  ],
  ['a control extension in two parts', join(screen, 0x21, 0xf9, 2, 0, 1, 1, 0, 0, image, trailer)],
  ['bytes after the trailer', join(screen, image, trailer, '<html>')],
  ['a zero after the trailer', join(screen, image, trailer, 0)],
  ['junk between blocks, which ends the animation', join(screen, image, 0, image, trailer)],
  [
    'an image of 12 bit codes, which ends the animation',
    join(screen, image, 0x2c, Buffer.alloc(9), 12),
  ],
])('%s: not clean, but no error', (_, bytes) => {
  expect(factsOf(bytes)).toMatchObject({ frames: 1, isClean: false });
});

describe('loops', () => {
  const animated = (...loops: readonly Buffer[]) =>
    factsOf(join(screen, ...loops, image, image, trailer));

  test.each([
    [0, 0],
    [1, 2],
    [40, 41],
    [65_535, 65_536],
  ])('%i repeats are %i plays', (repeats, plays) => {
    expect(animated(gifLoop(repeats)).animation?.plays).toBe(plays);
    expect(animated(gifLoop(repeats, 'ANIMEXTS1.0')).animation?.plays).toBe(plays);
  });

  test('without an extension it plays once', () => {
    expect(animated().animation).toEqual({ delaysMs: [100, 100], plays: 1 });
  });

  test('the last extension wins, even behind the frames', () => {
    expect(animated(gifLoop(9), gifLoop(2)).animation?.plays).toBe(3);
    const behind = factsOf(join(screen, gifLoop(9), image, image, gifLoop(0), trailer));
    expect(behind).toMatchObject({ animation: { plays: 0 }, isClean: true });
  });
});

test('delays are hundredths of a second, 100 ms without a control extension, the last one wins', () => {
  const bytes = join(
    ...[screen, gifControl(0), image, image, gifControl(3), gifControl(65_535), image, trailer],
  );
  expect(factsOf(bytes).animation?.delaysMs).toEqual([0, 100, 655_350]);
});

describe('the canvas, as libnsgif sees it', () => {
  test.each([
    ['the first frame lets it grow', [4, 3], [[2, 1, 5, 6]], [7, 7]],
    [
      'the second does not',
      [4, 3],
      [
        [0, 0, 4, 3],
        [2, 1, 5, 6],
      ],
      [4, 3],
    ],
    ['a smaller frame leaves it', [40, 30], [[0, 0, 4, 3]], [40, 30]],
    ['0x3 is left to the first frame', [0, 3], [[1, 0, 4, 2]], [5, 2]],
    ['640x480 is taken for a monitor', [640, 480], [[0, 0, 4, 3]], [4, 3]],
    [
      '1600x1200 too',
      [1600, 1200],
      [
        [0, 0, 4, 3],
        [0, 0, 1600, 1200],
      ],
      [4, 3],
    ],
    ['2048 px are the most', [2048, 5], [[0, 0, 4, 3]], [2048, 5]],
    ['2049 px are too much', [2049, 5], [[0, 0, 4, 3]], [4, 3]],
    ['a frame of no width is one', [4, 3], [[0, 0, 0, 3]], [4, 3]],
  ] as const)('%s', async (_, [width, height], frames, [widthPx, heightPx]) => {
    const images = frames.map(([x, y, w, h]) => gifImage(x, y, w, h));
    const bytes = join(gifScreen(width, height), ...images, trailer);
    expect(factsOf(bytes)).toMatchObject({ widthPx, heightPx, frames: frames.length });
    const metadata = await sharp(bytes).metadata();
    expect([metadata.width, metadata.height]).toEqual([widthPx, heightPx]);
  });
});

testCorrupt([
  ['a header alone', join('GIF89a')],
  ['half a palette', screen.subarray(0, -2)],
  ['no frames', screen],
  ['no frames, but a trailer', join(screen, trailer)],
  ['no frames, but junk', join(screen, 'junk')],
  ['a cut image descriptor', join(screen, image, image.subarray(0, 9))],
  ['a cut image', join(screen, image, image.subarray(0, -2))],
  ['an image without its last zero', join(screen, image.subarray(0, -1))],
  ['a cut comment', join(screen, image, comment.subarray(0, -1))],
  ['a lone extension introducer', join(screen, image, 0x21)],
  ['a control extension without its image', join(screen, image, gifControl(1))],
  ['an image of 12 bit codes and no other', join(screen, 0x2c, Buffer.alloc(9), 12)],
]);

test('real files: several loop extensions, trailing bytes, a polyglot', () => {
  const facts = (name: string) => factsOf(corpusFile(name));
  expect(facts('gif-animated/wuffs__multiple-loop-counts.gif').animation?.plays).toBe(41);
  expect(facts('gif-animated/sharp__rotating-squares.gif').isClean).toBe(false);
  expect(facts('hostile-polyglot/derived__gif-plus-html.gif').isClean).toBe(false);
});
