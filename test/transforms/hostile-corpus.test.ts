import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { corpusCategories, corpusFile, corpusFiles } from '../formats/facts-of.ts';
import { samples, shareTestApp } from '../support/test-app.ts';

const files = corpusFiles(...corpusCategories);

/** Two small files of each category; all of them are asked for by `npm run test:hostile`. */
const smallOnes = corpusCategories.flatMap((category) =>
  corpusFiles(category)
    .map((file) => ({ file, bytes: corpusFile(file).length }))
    .filter(({ bytes }) => bytes <= 250_000)
    .sort((one, other) => one.bytes - other.bytes)
    .slice(0, 2)
    .map(({ file }) => file),
);

/** Every way through the worker: still, animated, lossless, flattened. */
const WAYS = [
  'x.webp?size=64',
  'x.gif?size=64',
  'x.webp?size=4096&animated=true&quality=lossless',
  'x.png?size=240',
  'x.jpg?size=4096&quality=low',
];

describe('the corpus, through the service,', () => {
  const app = shareTestApp({
    // Each file is asked for in several tests, each time anew.
    settings: {
      CACHE_MEMORY_BYTES: '0',
      REFUSED_MAX_AGE_SECONDS: '0',
      TRANSFORM_TIMEOUT_MS: '200000', // a busy machine is no fault of the file
    },
  });

  /** Each file has an id of its own: nothing is remembered from one to the next. */
  const put = (file: string): number => {
    const id = files.indexOf(file);
    app.originals.put(`avatars/${id}/x`, corpusFile(file));
    return id;
  };
  const ask = async (file: string, ways = WAYS): Promise<number[]> => {
    const id = put(file);
    const statuses: number[] = [];
    for (const way of ways) statuses.push((await app.get(`/avatars/${id}/${way}`)).statusCode);
    return statuses;
  };

  test.each(smallOnes)('%s is served or refused, and nothing breaks', async (file) => {
    const statuses = await ask(file, WAYS.slice(0, 2));
    for (const status of statuses) expect([200, 415, 422]).toContain(status);
    expect(app.log.errors).toEqual([]);
  });

  test.each([
    ...corpusFiles('hostile-truncated').filter((file) => !/scan00|zero-bytes/.test(file)),
    'hostile-corrupt/filetype__fixture-corrupt.png',
    'hostile-corrupt/imagepng__x_interlaced_chck.png',
    'hostile-corrupt/codeccorpus__xhdn0g08.png',
    'hostile-corrupt/sharp__corrupt-header.jpg',
  ])('%s is 422 in every way: truncated or corrupt', async (file) => {
    expect(new Set(await ask(file))).toEqual(new Set([422]));
  });

  test.each([
    ...corpusFiles('hostile-svg'),
    ...corpusFiles('svg'),
    ...corpusFiles('nonimage'),
    ...corpusFiles('other-image'),
    'hostile-mismatch/derived__svg-named.png',
    'hostile-mismatch/derived__tiff-named.png',
    'hostile-truncated/derived__zero-bytes.png',
  ])('%s is 415 in every way: not an image that is decoded', async (file) => {
    expect(new Set(await ask(file))).toEqual(new Set([415]));
  });

  test.each([
    'hostile-bomb/fuzzdb__uber.gif', // 40 000 frames
    'hostile-bomb/gen__png-20000x13000-1bit.png',
    'hostile-bomb/gen__webp-16383x16383.webp',
    'hostile-bomb/sharp__65536-uint32-limit.png',
    'hostile-hugedim/fuzzdb__lottapixel.jpg',
    'hostile-hugedim/sharp__giant-image.jpg',
  ])('%s is 422 before anything is decoded', async (file) => {
    const before = app.renderer.renders;
    expect(new Set(await ask(file))).toEqual(new Set([422]));
    expect(app.renderer.renders).toBe(before);
  });

  test('a bomb of frames is a still all the same, but no animation', async () => {
    const file = 'hostile-bomb/gen__gif-1500x1500-100frames.gif';
    expect(await ask(file, ['x.webp?size=64', 'x.gif?size=64'])).toEqual([200, 422]);
  });

  test('no payload of a polyglot survives a render', async () => {
    for (const file of corpusFiles('hostile-polyglot')) {
      const id = put(file);
      for (const way of ['x.gif?size=16', 'x.jpg?size=4096', 'x.webp?size=4096']) {
        const { rawPayload } = await app.get(`/avatars/${id}/${way}`);
        for (const payload of ['<?php', '<script', 'PK\x03\x04']) {
          expect(rawPayload.includes(payload, 0, 'latin1'), `${file} as ${way}`).toBe(false);
        }
      }
    }
  });

  test('a payload behind the end of an image is not passed through', async () => {
    const id = put('hostile-polyglot/derived__gif-plus-html.gif');
    const { rawPayload } = await app.get(`/avatars/${id}/x.gif?size=4096`);
    expect(rawPayload.includes('<script')).toBe(false);
    expect(await sharp(rawPayload).metadata()).toMatchObject({ format: 'gif', width: 36 });
  });

  test('a good image is served right afterwards', async () => {
    const { rawPayload } = await app.serve(samples.png, '/avatars/{id}/good.webp?size=64');
    expect(await sharp(rawPayload).metadata()).toMatchObject({ format: 'webp', width: 64 });
  });
});
