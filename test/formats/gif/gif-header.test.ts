import { expect, test } from 'vitest';
import { gifControl, gifImage, gifLoop, gifScreen, join, type Part } from '../containers.ts';
import { headerOf, plainStill, testVerdicts, verdictOn } from '../header-of.ts';

const screen = gifScreen(4, 3);
const image = gifImage(0, 0, 4, 3);
const trailer = join(0x3b);
const comment = join(0x21, 0xfe, 5, 'hello', 0);
const gif = (...blocks: readonly Part[]) => join(screen, ...blocks);
/** A GIF of one image after an extension. */
const extended = (...extension: readonly Part[]) => gif(0x21, ...extension, image, trailer);
const film = (...blocks: readonly Uint8Array[]) => gif(...blocks, image, image, trailer);

test('a bare GIF can be passed through', () => {
  expect(verdictOn(gif(gifControl(7), image, trailer))).toEqual({
    ...{ format: 'gif', widthPx: 4, heightPx: 3, isRewritable: true },
    ...plainStill,
  });
});

testVerdicts(
  'a GIF that can be passed through',
  { frames: 1, isClean: true },
  { 'no trailer': gif(image) },
);

testVerdicts(
  'a GIF that is read, but never passed through',
  { frames: 1, isClean: false },
  {
    'a comment': gif(comment, image, trailer),
    'a comment at the end': gif(image, comment, trailer),
    'plain text': gif(image, 0x21, 0x01, 12, Buffer.alloc(12), 1, 'x', 0, trailer),
    'an unknown extension': extended(0x2a, 1, 'x', 0),
    // To a reader of sub-blocks, the extension ends at its 0, and the rest is junk.
    'an extension whose first sub-block is empty': extended(0xff, 0, 2, 'ab', 0),
    'a comment whose first sub-block is empty': extended(0xfe, 0),
    XMP: extended(0xff, 11, 'XMP DataXMP', 1, 'x', 0),
    'an ICC profile': extended(0xff, 11, 'ICCRGBG1012', 1, 'x', 0),
    'a loop extension of another name': extended(gifLoop(0, 'NETSCAPE9.9').subarray(1)),
    'a loop extension with a second sub-block': extended(
      0xff,
      11,
      'NETSCAPE2.0',
      3,
      1,
      0,
      0,
      1,
      'x',
      0,
    ),
    'a control extension with a second sub-block': extended(0xf9, 4, 0, 1, 0, 0, 1, 'x', 0),
    'a control extension split into two sub-blocks': extended(0xf9, 2, 0, 1, 1, 0, 0),
    'bytes after the trailer': gif(image, trailer, '<html>'),
    'a zero after the trailer': gif(image, trailer, 0),
    'junk between blocks, which ends the animation': gif(image, 0, image, trailer),
    'an image of 12-bit codes, which also ends the animation': gif(
      image,
      0x2c,
      Buffer.alloc(9),
      12,
    ),
  },
);

test.each([
  [0, 0],
  [1, 2],
  [65_535, 65_536],
])('a GIF of %i repeats plays %i times', (repeats, plays) => {
  for (const name of ['NETSCAPE2.0', 'ANIMEXTS1.0']) {
    expect(headerOf(film(gifLoop(repeats, name))).animation?.plays).toBe(plays);
  }
});

test.each([
  ['once without an extension', film(), 1],
  ['as the last extension declares', film(gifLoop(9), gifLoop(2)), 3],
  [
    'as an extension after the frames declares',
    gif(gifLoop(9), image, image, gifLoop(0), trailer),
    0,
  ],
])('a GIF plays %s', (_, bytes, plays) => {
  const animation = { delaysMs: [100, 100], plays };
  expect(headerOf(bytes)).toMatchObject({ animation, isClean: true });
});

test('reads delays in hundredths of a second from the last control extension, and 100 ms without one', () => {
  const controls = [gifControl(3), gifControl(65_535)];
  const bytes = gif(gifControl(0), image, image, ...controls, image, trailer);
  expect(headerOf(bytes).animation?.delaysMs).toEqual([0, 100, 655_350]);
});

const moved = gifImage(2, 1, 5, 6);
const MONITORS = [
  [640, 480],
  [640, 512],
  [800, 600],
  [1024, 768],
  [1280, 1024],
  [1600, 1200],
] as const;
const interlaced = (bytes: Buffer): Buffer => join(bytes.subarray(0, 9), 0x40, bytes.subarray(10));
// Measured in Chromium.
test.each([
  ['the first frame enlarges it', [4, 3], [moved], [7, 7]],
  ['the second frame does not enlarge it', [4, 3], [image, moved], [4, 3]],
  ['a smaller frame does not change it', [40, 30], [image], [40, 30]],
  ['the first frame determines an edge of 0', [0, 3], [gifImage(1, 0, 4, 2)], [5, 3]],
  ['a frame without width counts', [4, 3], [gifImage(0, 0, 0, 5)], [4, 5]],
  ['an empty screen and an empty frame have one pixel', [0, 0], [gifImage(0, 0, 0, 0)], [1, 1]],
  // libnsgif ignores these screens.
  ...MONITORS.map((size) => [`the screen of ${size.join('x')}`, size, [image], size] as const),
  ['a screen wider than 2048 px', [2049, 5], [image], [2049, 5]],
  ['a screen of the largest size', [65_535, 65_535], [image], [65_535, 65_535]],
] as const)('the canvas of a GIF: %s', (_, [width, height], images, [widthPx, heightPx]) => {
  const bytes = join(gifScreen(width, height), ...images, trailer);
  expect(headerOf(bytes)).toMatchObject({ widthPx, heightPx, frames: images.length });
});

test.each([
  ['within the canvas', gifImage(1, 1, 3, 2), undefined],
  ['below the canvas', gifImage(0, 0, 4, 9), undefined],
  ['next to the canvas', gifImage(9, 0, 900, 9), undefined],
  ['wider than the canvas, down to its edge', gifImage(1, 1, 900, 9), 900 * 2 - 897],
  ['interlaced, to its end', interlaced(gifImage(0, 0, 4, 9)), 36],
])('a later frame %s has %s pixels to decode', (_, later, codedPixels) => {
  expect(headerOf(gif(image, later, trailer)).codedPixels).toBe(codedPixels);
});

testVerdicts('a corrupt GIF', 'corrupt', {
  'only a header': join('GIF89a'),
  'half a palette': screen.subarray(0, -2),
  'no frames': screen,
  'only a trailer': gif(trailer),
  'only junk': gif('junk'),
  'a truncated image descriptor': gif(image, image.subarray(0, 9)),
  'a truncated image': gif(image, image.subarray(0, -2)),
  'an image without its last zero': gif(image.subarray(0, -1)),
  'a truncated comment': gif(image, comment.subarray(0, -1)),
  'an extension introducer at the end': gif(image, 0x21),
  'a control extension without its image': gif(image, gifControl(1)),
  'only an image of 12-bit codes': gif(0x2c, Buffer.alloc(9), 12),
});
