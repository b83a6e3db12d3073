/** That the comparison behind the goldens notices what it must, and that a failure leaves its files. */

import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp, { type Sharp } from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compareImages,
  type DecodedImage,
  decodeImage,
} from '../support/images/image-comparison.ts';
import { GoldenFiles, keepFailure } from './golden-files.ts';

const fixture = (file: string): string =>
  fileURLToPath(new URL(`../../fixtures/${file}`, import.meta.url));
const photoFile = fixture('expected/kinds/avatar-png.png');
const animationFile = fixture('expected/kinds/sticker-gif-of-webp.gif');
const rules = ['exact', 'lossy', 'palette'] as const;

let folder: string;
let photo: DecodedImage;
let animation: DecodedImage;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'goldens-'));
  photo = await decodeImage(await readFile(photoFile));
  animation = await decodeImage(await readFile(animationFile));
});

afterAll(() => rm(folder, { recursive: true }));

/** The photo after a change, by way of a lossless file. */
async function changed(change: (image: Sharp) => Sharp): Promise<DecodedImage> {
  return decodeImage(await change(sharp(photoFile)).png().toBuffer());
}

/** The animation with every sample of one channel of one frame passed through `change`. */
function withChannel(
  image: DecodedImage,
  channel: number,
  change: (sample: number, index: number) => number,
): DecodedImage {
  const frames = image.frames.map((frame, number) =>
    number < image.frames.length - 1
      ? frame
      : frame.map((sample, at) => (at % 4 === channel ? change(sample, at) : sample)),
  );
  return { ...image, frames };
}

describe.each(rules)('%s', (rule) => {
  test('finds nothing between an image and itself', () => {
    expect(compareImages(photo, photo, rule)).toEqual([]);
    expect(compareImages(animation, animation, rule)).toEqual([]);
  });

  test.each([
    [1, 0],
    [0, 1],
  ])('notices a shift by %i, %i pixels', async (left, top) => {
    const { widthPx: width, heightPx: height } = photo;
    const shifted = await changed((image) =>
      image.extend({ top, left, extendWith: 'copy' }).extract({ left: 0, top: 0, width, height }),
    );
    expect(compareImages(photo, shifted, rule)).not.toEqual([]);
  });

  test('notices another size', async () => {
    const smaller = await changed((image) => image.resize(photo.widthPx - 1));
    expect(compareImages(photo, smaller, rule)).toEqual(['expected size 96x96 but received 95x95']);
  });

  test('notices a picture turned or mirrored', async () => {
    for (const change of [(i: Sharp) => i.rotate(180), (i: Sharp) => i.flop()]) {
      expect(compareImages(photo, await changed(change), rule)).not.toEqual([]);
    }
  });

  test('notices that a frame is missing', () => {
    const shorter = {
      ...animation,
      frames: animation.frames.slice(1),
      delaysMs: animation.delaysMs?.slice(1),
    };
    expect(compareImages(animation, shorter, rule)[0]).toBe('expected frames 10 but received 9');
  });

  test('notices that two frames have changed places', () => {
    const [first, second, ...rest] = animation.frames;
    if (first === undefined || second === undefined) throw new Error('Expected two frames');
    const swapped = { ...animation, frames: [second, first, ...rest] };
    expect(compareImages(animation, swapped, rule)).not.toEqual([]);
  });

  test('notices another delay and another number of plays', () => {
    const delaysMs = animation.delaysMs?.map((delay, index) => (index === 4 ? delay + 10 : delay));
    expect(compareImages(animation, { ...animation, delaysMs }, rule)).toEqual([
      'expected delays 90 90 90 90 150 90 90 90 90 300 but received 90 90 90 90 160 90 90 90 90 300',
    ]);
    expect(compareImages(animation, { ...animation, plays: 0 }, rule)).toEqual([
      'expected plays 3 but received 0',
    ]);
  });

  test('notices one frame with a cast', () => {
    const cast = withChannel(animation, 2, (sample) => Math.max(0, sample - 8));
    expect(compareImages(animation, cast, rule).join()).toMatch(/^frame 10: /);
  });

  test('notices lost transparency', () => {
    const opaque = withChannel(animation, 3, () => 255);
    expect(compareImages(animation, opaque, rule).join()).toMatch(/frame 10: .*(alpha|samples)/);
  });
});

test('a cast too weak to be seen in one pixel is noticed in all of them', () => {
  const warmer = withChannel(photo, 0, (sample) => Math.min(255, sample + 2));
  expect(compareImages(photo, warmer, 'lossy').join()).toMatch(/red differs by [12]\.\d\d levels/);
});

test('noise of rounding is only a difference where every sample counts', () => {
  const noisy = withChannel(photo, 1, (sample, at) =>
    Math.min(255, Math.max(0, sample + (at % 8 === 1 ? 1 : -1))),
  );
  expect(compareImages(photo, noisy, 'lossy')).toEqual([]);
  expect(compareImages(photo, noisy, 'palette')).toEqual([]);
  expect(compareImages(photo, noisy, 'exact')).not.toEqual([]);
});

test('colour below full transparency is seen where every sample counts, and nowhere else', () => {
  const clear = { ...photo, frames: photo.frames.map((frame) => new Uint8Array(frame.length)) };
  const dyed = withChannel(clear, 0, () => 255);
  expect(compareImages(clear, dyed, 'lossy')).toEqual([]);
  expect(compareImages(clear, dyed, 'exact')).not.toEqual([]);
});

test('a missing golden is a difference, and nothing is written', async () => {
  const goldens = new GoldenFiles(folder, { isUpdating: false });
  const differences = await goldens.compare('new/photo.png', await readFile(photoFile), 'exact');
  expect(differences).toEqual(['there is no golden new/photo.png']);
  expect(goldens.read('new/photo.png')).toBeUndefined();
});

test('an update writes what is missing or different, and deletes what nobody names', async () => {
  const goldens = new GoldenFiles(folder, { isUpdating: true });
  const [one, other] = [await readFile(photoFile), await readFile(animationFile)];
  expect(await goldens.compare('a/one.png', one, 'exact')).toEqual([]);
  expect(goldens.read('a/one.png')).toEqual(one);
  expect(await goldens.compare('a/one.png', other, 'exact')).toEqual([]);
  expect(goldens.read('a/one.png')).toEqual(other);

  const reader = new GoldenFiles(folder, { isUpdating: false });
  expect(await reader.findStale(new Set(['a/two.png']))).toEqual(['a/one.png']);
  expect(await goldens.findStale(new Set(['a/two.png']))).toEqual([]);
  expect(goldens.read('a/one.png')).toBeUndefined();
});

test('a failure leaves what was expected, what came, and where two images of one size differ', async () => {
  const expected = await readFile(photoFile);
  const flopped = await sharp(photoFile).flop().png().toBuffer();
  const { widthPx, heightPx } = photo;
  const keep = (name: string, files: Parameters<typeof keepFailure>[2]) =>
    keepFailure(path.join(folder, 'report', name), '.png', files);
  await keep('kinds/one', { expected, actual: flopped });
  await keep('missing', { expected: undefined, actual: flopped });
  await keep('no-image', { expected, actual: Buffer.from('{}') });
  const kept = readdirSync(path.join(folder, 'report'), { recursive: true });
  expect(kept.sort()).toEqual([
    ...['kinds', 'kinds/one.actual.png', 'kinds/one.difference.png', 'kinds/one.expected.png'],
    ...['missing.actual.png', 'no-image.actual.png', 'no-image.expected.png'],
  ]);
  const read = (name: string) => readFile(path.join(folder, 'report/kinds', name));
  expect(await read('one.expected.png')).toEqual(expected);
  expect(await read('one.actual.png')).toEqual(flopped);
  expect(await decodeImage(await read('one.difference.png'))).toMatchObject({ widthPx, heightPx });
});
