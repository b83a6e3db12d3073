import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import {
  compareImages,
  type DecodedImage,
  decodeImage,
} from '../support/images/image-comparison.ts';

const photo = readFileSync('fixtures/expected/kinds/avatar-png.png');
const animation = readFileSync('fixtures/expected/kinds/sticker-gif-of-webp.gif');

const create = { width: 8, height: 8, channels: 4, background: '#0000' } as const;
const clear = await sharp({ create }).png().toBuffer();

/** Changes one channel of the last frame. */
const withChannel = (
  image: DecodedImage,
  channel: number,
  change: (sample: number, at: number) => number,
): DecodedImage => ({
  ...image,
  frames: image.frames.with(
    -1,
    new Uint8Array(
      Uint8ClampedArray.from(image.frames.at(-1) ?? [], (sample, at) =>
        at % 4 === channel ? change(sample, at) : sample,
      ),
    ),
  ),
});
const swapFrames = (image: DecodedImage): DecodedImage => {
  const [first, second, ...rest] = image.frames;
  return { ...image, frames: [second ?? expect.fail(), first ?? expect.fail(), ...rest] };
};
const rotate = async (degrees: number) =>
  decodeImage(await sharp(photo).rotate(degrees).toBuffer());
const shift = async () =>
  decodeImage(await sharp(photo).affine([1, 0, 0, 1], { odx: 1 }).png().toBuffer());

type Change = (image: DecodedImage) => DecodedImage | Promise<DecodedImage>;

const all = ['exact', 'lossy', 'palette'] as const;

test.each<[change: string, file: Buffer, change: Change, seenBy: readonly string[]]>([
  ['nothing', animation, (it) => it, []],
  ['a rotation by 180°', photo, () => rotate(180), all],
  ['a shift by a pixel', photo, shift, all],
  ['a missing frame', animation, (it) => ({ ...it, frames: it.frames.slice(1) }), all],
  ['the order of frames', animation, swapFrames, all],
  ['a delay', animation, (it) => ({ ...it, delaysMs: it.delaysMs?.with(4, 160) }), all],
  ['plays', animation, (it) => ({ ...it, plays: 0 }), all],
  ['a cast', animation, (it) => withChannel(it, 2, (sample) => sample - 8), all],
  ['lost transparency', animation, (it) => withChannel(it, 3, () => 255), all],
  ['a faint cast', photo, (it) => withChannel(it, 0, (sample) => sample + 1), ['exact', 'lossy']],
  ['rounding', photo, (it) => withChannel(it, 1, (sample, at) => sample + (at % 8) - 3), ['exact']],
  ['invisible colours', clear, (it) => withChannel(it, 0, () => 255), ['exact']],
])('a change of %s is detected by the expected rules', async (_, file, change, seenBy) => {
  const image = await decodeImage(file);
  const changed = await change(image);
  expect(all.filter((rule) => compareImages(image, changed, rule).length > 0)).toEqual(seenBy);
});
