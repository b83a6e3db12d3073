import { expect, test } from 'vitest';
import { corpusCategories, corpusFile, corpusFiles } from '../formats/header-of.ts';
import { findDefects } from '../hostile/verdict.ts';
import { shareTestApp } from '../support/test-app.ts';

/** Two small files of each category; `npm run test:hostile` requests all files. */
const smallOnes = corpusCategories.flatMap((category) =>
  corpusFiles(category)
    .map((file) => ({ file, bytes: corpusFile(file).length }))
    .filter(({ bytes }) => bytes <= 250_000)
    .sort((one, other) => one.bytes - other.bytes)
    .slice(0, 2)
    .map(({ file }) => file),
);

/** Every path through the worker: still, animated, lossless, flattened. */
const PATHS = [
  'x.webp?size=64',
  'x.gif?size=64',
  'x.webp?size=4096&animated=true&quality=lossless',
  'x.png?size=240',
  'x.jpg?size=4096&quality=low',
];

const app = shareTestApp({
  // Each file is rendered in several tests, without caches; a busy machine must not fail them.
  settings: {
    CACHE_MEMORY_BYTES: '0',
    TRANSFORM_TIMEOUT_MS: '200000',
    MAX_ANIMATION_PIXELS: '100000000',
  },
});
const request = (file: string, tail: string) =>
  app.serve(corpusFile(file), `/avatars/{id}/${tail}`);

test.each(smallOnes)(
  '%s is served correctly or rejected, without internal errors',
  async (file) => {
    for (const tail of PATHS.slice(0, 2)) {
      const { statusCode: status, headers, rawPayload: body } = await request(file, tail);
      const received = { status, body, headers: new Headers(headers as Record<string, string>) };
      expect(await findDefects(corpusFile(file), `/avatars/1/${tail}`, received)).toEqual([]);
    }
    expect(app.log.errors).toEqual([]);
  },
);

test.each([
  ...corpusFiles('hostile-truncated').filter((file) => !/scan00|zero-bytes/.test(file)),
  'hostile-corrupt/filetype__fixture-corrupt.png',
  'hostile-corrupt/imagepng__x_interlaced_chck.png',
  'hostile-corrupt/codeccorpus__xhdn0g08.png',
  'hostile-corrupt/sharp__corrupt-header.jpg',
])('returns 422 for %s in all formats: truncated or corrupt', async (file) => {
  for (const tail of PATHS) expect((await request(file, tail)).statusCode, tail).toBe(422);
});

test('serves a bomb of frames as a still, but not as an animation', async () => {
  const file = 'hostile-bomb/gen__gif-1500x1500-100frames.gif';
  expect((await request(file, 'x.webp?size=64')).statusCode).toBe(200);
  expect((await request(file, 'x.gif?size=64')).statusCode).toBe(422);
});
