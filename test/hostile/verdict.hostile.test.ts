/** What the verdict must let pass, and what it must not. */
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { drawGif } from '../support/images/draw-gif.ts';
import { readSample, samples } from '../support/test-app.ts';
import { findFaults, type TimedResponse } from './verdict.ts';

const photo = samples.jpeg; // 480×480
const parrot = samples.animatedGif; // 128×128, 10 frames
const respond = (status: number, body: Buffer | string, type = 'application/json') => ({
  status,
  headers: new Headers({ 'content-type': type, 'x-content-type-options': 'nosniff' }),
  body: Buffer.from(body),
  startedMs: 0,
  tookMs: 1,
});
const refuse = (status: number, code: string): TimedResponse =>
  respond(status, JSON.stringify({ code }));
const still = '/avatars/1/1.webp?size=64';
const moving = '/avatars/1/1.webp?size=64&animated=true';
const passthrough = '/attachments/1/1/file';

const webp = await sharp(photo).resize(64).webp().toBuffer();
const animated = await sharp(parrot, { animated: true }).resize(64).webp().toBuffer();
const firstFrame = await sharp(parrot).resize(64).webp().toBuffer();
const slowed = await sharp(parrot, { animated: true }).resize(64).webp({ delay: 1230 }).toBuffer();
/** All frames as one picture: what sharp makes of an animation in a format that has none. */
const strip = await sharp(await sharp(animated, { animated: true }).png().toBuffer())
  .webp()
  .toBuffer();
const withExif = await sharp(photo)
  .resize(64)
  .withExif({ IFD0: { Artist: 'A' } })
  .webp()
  .toBuffer();
const flat = drawGif({
  widthPx: 4,
  heightPx: 4,
  indexBits: 2,
  frames: [{ widthPx: 4, pixels: Array.from({ length: 16 }, () => 1) }],
});

describe('nothing is wrong with', () => {
  test.each([
    ['a still', photo, still, respond(200, webp, 'image/webp')],
    ['an animation', parrot, moving, respond(200, animated, 'image/webp')],
    ['a file passed on', photo, passthrough, respond(200, photo, 'image/jpeg')],
    ['a file passed through', flat, '/emojis/1.gif', respond(200, flat, 'image/gif')],
    ['no image', samples.text, still, refuse(415, 'UNSUPPORTED_MEDIA_TYPE')],
    ['too much', photo, still, refuse(422, 'MEDIA_TOO_LARGE')],
    ['a corrupt file', photo, still, refuse(422, 'UNPROCESSABLE_MEDIA')],
    ['a deadline', photo, still, refuse(504, 'TRANSFORM_TIMEOUT')],
  ])('%s', async (_, original, target, given) => {
    expect(await findFaults(original, target, given)).toEqual([]);
  });
});

describe('something is wrong with', () => {
  test.each([
    ['a bug', photo, still, refuse(500, 'INTERNAL_ERROR')],
    ['a failing origin', photo, still, refuse(502, 'ORIGIN_ERROR')],
    ['a full queue', photo, still, refuse(503, 'OVERLOADED')],
    ['a missing file', photo, still, refuse(404, 'UNKNOWN_MEDIA')],
    ['a timeout of the origin', photo, still, refuse(504, 'ORIGIN_TIMEOUT')],
    ['another code', photo, still, refuse(415, 'MEDIA_TOO_LARGE')],
    ['another type', photo, still, respond(200, webp, 'image/png')],
    ['another format', photo, '/avatars/1/1.png?size=64', respond(200, webp, 'image/png')],
    ['another size', photo, '/avatars/1/1.webp?size=60', respond(200, webp, 'image/webp')],
    ['half a picture', photo, still, respond(200, webp.subarray(0, 600), 'image/webp')],
    ['an empty response', photo, still, respond(200, '', 'image/webp')],
    ['an image of none', samples.text, still, respond(200, webp, 'image/webp')],
    ['a strip of frames', parrot, still, respond(200, strip, 'image/webp')],
    ['an animation for a still', parrot, still, respond(200, animated, 'image/webp')],
    ['a lost animation', parrot, moving, respond(200, firstFrame, 'image/webp')],
    ['other delays', parrot, moving, respond(200, slowed, 'image/webp')],
    ['EXIF', photo, still, respond(200, withExif, 'image/webp')],
    ['another file passed on', photo, passthrough, respond(200, webp, 'image/jpeg')],
    ['a refusal to pass a file on', photo, passthrough, refuse(422, 'MEDIA_TOO_LARGE')],
    [
      'a file with EXIF passed through',
      readSample('avatars/1/ab12'),
      '/avatars/1/1.jpg?size=4096&quality=lossless',
      respond(200, readSample('avatars/1/ab12'), 'image/jpeg'),
    ],
  ])('%s', async (_, original, target, given) => {
    expect(await findFaults(original, target, given)).not.toEqual([]);
  });
});
