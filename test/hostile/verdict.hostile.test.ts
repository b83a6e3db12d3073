import sharp from 'sharp';
import { expect, test } from 'vitest';
import { drawGif } from '../support/images/draw-gif.ts';
import { readSample, samples } from '../support/test-app.ts';
import { findDefects } from './verdict.ts';

const photo = samples.jpeg; // 480×480
const parrot = samples.animatedGif; // 128×128, 10 frames
const tagged = readSample('avatars/1/ab12');
const pixels = Array.from({ length: 16 }, () => 1);
const flat = drawGif({ widthPx: 4, heightPx: 4, indexBits: 2, frames: [{ widthPx: 4, pixels }] });
const still = '/avatars/1/1.webp?size=64';
const animatedTarget = `${still}&animated=true`;
const file = '/attachments/1/1/file';

const small = sharp(photo).resize(64);
const webp = await small.clone().webp().toBuffer();
const exif = await small
  .clone()
  .withExif({ IFD0: { Artist: 'A' } })
  .webp()
  .toBuffer();
const film = sharp(parrot, { animated: true }).resize(64);
const animated = await film.clone().webp().toBuffer();
const slowed = await film.clone().webp({ delay: 1230 }).toBuffer();
const firstFrame = await sharp(parrot).resize(64).webp().toBuffer();
/** All frames as one picture, as sharp converts an animation to a format without frames. */
const strip = await sharp(await film.clone().png().toBuffer())
  .webp()
  .toBuffer();

type Response = readonly [status: number, type: string, body: Buffer | string];
const ok = (body: Buffer | string, type = 'webp'): Response => [200, `image/${type}`, body];
const refuse = (status: number, code: string): Response => [status, 'json', `{"code":"${code}"}`];

test.each<[what: string, isRight: boolean, original: Buffer, target: string, Response]>([
  ['a still', true, photo, still, ok(webp)],
  ['an animation', true, parrot, animatedTarget, ok(animated)],
  ['an unmodified file', true, photo, file, ok(photo, 'jpeg')],
  ['an unmodified image', true, flat, '/emojis/1.gif', ok(flat, 'gif')],
  ['a rejected text', true, samples.text, still, refuse(415, 'UNSUPPORTED_MEDIA_TYPE')],
  ['a rejected size', true, photo, still, refuse(422, 'MEDIA_TOO_LARGE')],
  ['a corrupt file', true, photo, still, refuse(422, 'UNPROCESSABLE_MEDIA')],
  ['a deadline', true, photo, still, refuse(504, 'TRANSFORM_TIMEOUT')],
  ['a bug', false, photo, still, refuse(500, 'INTERNAL_ERROR')],
  ['a full queue', false, photo, still, refuse(503, 'OVERLOADED')],
  ['a timeout of the origin', false, photo, still, refuse(504, 'ORIGIN_TIMEOUT')],
  ['another code', false, photo, still, refuse(415, 'MEDIA_TOO_LARGE')],
  ['another type', false, photo, still, ok(webp, 'png')],
  ['another format', false, photo, '/avatars/1/1.png?size=64', ok(webp, 'png')],
  ['another size', false, photo, '/avatars/1/1.webp?size=60', ok(webp)],
  ['half a picture', false, photo, still, ok(webp.subarray(0, 600))],
  ['an empty response', false, photo, still, ok('')],
  ['an image of a text', false, samples.text, still, ok(webp)],
  ['a strip of frames', false, parrot, still, ok(strip)],
  ['an animation for a still', false, parrot, still, ok(animated)],
  ['a lost animation', false, parrot, animatedTarget, ok(firstFrame)],
  ['other delays', false, parrot, animatedTarget, ok(slowed)],
  ['EXIF', false, photo, still, ok(exif)],
  [
    'an unmodified image with EXIF',
    false,
    tagged,
    '/avatars/1/1.jpg?size=4096',
    ok(tagged, 'jpeg'),
  ],
  ['another file', false, photo, file, ok(webp, 'jpeg')],
  ['a rejected passthrough', false, photo, file, refuse(422, 'MEDIA_TOO_LARGE')],
])(
  'the check of responses accepts %s: %s',
  async (_, isRight, original, target, [status, type, body]) => {
    const headers = new Headers({ 'content-type': type, 'x-content-type-options': 'nosniff' });
    const response = { status, headers, body: Buffer.from(body) };
    expect((await findDefects(original, target, response)).length === 0).toBe(isRight);
  },
);
