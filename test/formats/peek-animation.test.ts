import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { peekAnimation, readImageFacts } from '../../src/formats/read-image-facts.ts';
import { anmf, gifImage, gifScreen, join, riffChunk, vp8x, webpFile } from './containers.ts';
import { corpusFile, corpusFiles } from './facts-of.ts';

const folders = ['gif-animated', 'gif-delays', 'gif-manyframes', 'webp-animated', 'apng'];
const animations = corpusFiles(...folders).flatMap((name) => {
  const bytes = corpusFile(name);
  const facts = readImageFacts(bytes);
  return facts?.animation === undefined ? [] : [{ name, bytes, facts }];
});
const firstOf = (folder: string): Buffer => corpusFile(corpusFiles(folder)[0] ?? folder);

test('there are animations of each format to look at', () => {
  const formats = animations.map(({ facts }) => facts.format);
  expect(formats.filter((format) => format === 'gif').length).toBeGreaterThan(5);
  expect(formats.filter((format) => format === 'webp').length).toBeGreaterThan(2);
  expect(formats.filter((format) => format === 'apng').length).toBeGreaterThan(5);
});

describe.each(animations)('the first bytes of $name', ({ bytes, facts }) => {
  test('tell nothing that the whole does not', () => {
    let mostFrames = 0;
    for (let part = 1; part <= 64; part += 1) {
      const seen = peekAnimation(bytes.subarray(0, Math.floor((bytes.length * part) / 64)));
      if (seen === undefined) continue;
      const { format, widthPx, heightPx, frames } = seen;
      expect({ format, widthPx, heightPx }).toEqual({
        format: facts.format,
        widthPx: facts.widthPx,
        heightPx: facts.heightPx,
      });
      expect(seen.animation?.delaysMs).toEqual(facts.animation?.delaysMs.slice(0, frames));
      expect(seen.isClean || !facts.isClean).toBe(true);
      expect(frames).toBeGreaterThanOrEqual(Math.max(2, mostFrames));
      mostFrames = frames;
    }
    // All of them are the first bytes, too.
    expect(mostFrames).toBe(facts.frames);
  });
});

test.each([
  ['nothing', new Uint8Array()],
  ['a magic alone', Buffer.from('GIF89a')],
  ['a GIF of one frame', join(gifScreen(4, 3), gifImage(0, 0, 4, 3))],
  ['the header of an animated WebP', firstOf('webp-animated').subarray(0, 40)],
  ['the header of an APNG', firstOf('apng').subarray(0, 100)],
  ['a PNG', firstOf('png-8')],
  ['a JPEG', firstOf('jpeg-gray')],
])('%s is no animation yet', (_, bytes) => {
  expect(peekAnimation(bytes)).toBeUndefined();
});

const dot = riffChunk('VP8L', Buffer.from('2f00000000888808', 'hex'));

test.each([
  ['GIF', join(gifScreen(4, 3), gifImage(0, 0, 4, 3), gifImage(0, 0, 4, 3))],
  ['WebP', webpFile(vp8x(2, 1, 1), anmf(1, dot), anmf(1, dot))],
])('a %s of two frames is one', (_, bytes) => {
  expect(peekAnimation(bytes)?.frames).toBe(2);
});

test('never fails, whatever the bytes', () => {
  const originals = animations.map(({ bytes }) => bytes.subarray(0, 4_096));
  fc.assert(
    fc.property(
      fc.constantFrom(...originals),
      fc.array(fc.tuple(fc.nat(4_095), fc.nat(255)), { maxLength: 20 }),
      fc.nat(4_096),
      (original, changes, length) => {
        const bytes = Buffer.from(original);
        for (const [position, value] of changes) {
          if (position >= 12 && position < bytes.length) bytes[position] = value;
        }
        const seen = peekAnimation(bytes.subarray(0, length));
        if (seen !== undefined) expect(seen.frames).toBe(seen.animation?.delaysMs.length);
      },
    ),
    { numRuns: 2_000 },
  );
});
