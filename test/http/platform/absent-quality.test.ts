import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import { samples, shareTestApp, withDecoder } from '../../support/test-app.ts';
import { hasFfmpeg, readVideo } from '../../support/videos.ts';

// Contract §14, "Leniency": the quality of attachments and external media without the parameter.

const settings = { COMPATIBILITY: 'fluxer', ...withDecoder };
const app = shareTestApp({ settings });
const strict = shareTestApp({ settings: withDecoder });

const corpus = (file: string) => readFileSync(`fixtures/corpus/${file}`);
const lossyOriginals = {
  'a JPEG': samples.jpeg,
  'a lossy WebP': samples.webp,
  'an AVIF of subsampled colours': corpus('avif/libavif__kodim03_yuv420_8bpc.avif'),
  'a HEIC': readFileSync('fixtures/heic/says-avif.heic'),
};
const exactOriginals = {
  'a PNG': samples.png,
  'a lossless WebP': readFileSync('fixtures/originals/emojis/4'),
  'a GIF': samples.animatedGif,
};

let count = 100;

async function bodiesOf(original: Uint8Array, query: string, { get, originals } = app) {
  count += 1;
  const key = `attachments/1/${count}/picture`;
  originals.put(key, original);
  const bodyOf = async (quality: string) => {
    const { statusCode, rawPayload } = await get(`/${key}?${query}${quality}`);
    expect(statusCode, quality).toBe(200);
    return rawPayload.toString('base64');
  };
  return {
    absent: await bodyOf(''),
    high: await bodyOf('&quality=high'),
    lossless: await bodyOf('&quality=lossless'),
  };
}

describe.each(['width=60&format=webp', 'width=60&height=30'])('with %s', (query) => {
  test.each(Object.entries(lossyOriginals))('%s is rendered with high', async (_, original) => {
    const { absent, high, lossless } = await bodiesOf(original, query);
    expect(absent).toBe(high);
    expect(absent).not.toBe(lossless);
  });

  test.each(Object.entries(exactOriginals))('%s stays lossless', async (_, original) => {
    const { absent, lossless } = await bodiesOf(original, query);
    expect(absent).toBe(lossless);
  });

  test.each(Object.entries(lossyOriginals))(
    '%s stays lossless in strict mode',
    async (_, original) => {
      const { absent, lossless } = await bodiesOf(original, query, strict);
      expect(absent).toBe(lossless);
    },
  );
});

test.skipIf(!hasFfmpeg)(
  'the poster of a video without the extension of one has quality high',
  async () => {
    const clip = readVideo('clip-h264.mp4');
    const { absent, high, lossless } = await bodiesOf(clip, 'format=webp');
    expect(absent).toBe(high);
    expect(absent).not.toBe(lossless);
    const byContract = await bodiesOf(clip, 'format=webp', strict);
    expect(byContract.absent).toBe(byContract.lossless);
  },
);

test('sends an original unchanged if only its quality is absent', async () => {
  for (const original of Object.values(lossyOriginals)) {
    app.originals.put('attachments/1/2/photo', original);
    const { renders } = app.renderer;
    for (const query of ['', '?', '?animated=true', '?v=1', '?download=true']) {
      const { rawPayload } = await app.get(`/attachments/1/2/photo${query}`);
      expect(rawPayload.equals(original), query).toBe(true);
    }
    expect(app.renderer.renders).toBe(renders);
  }
});

test('shares a rendering with an absent quality if the quality has no effect', async () => {
  for (const format of ['png', 'gif']) {
    app.originals.put('attachments/1/3/photo', samples.jpeg);
    const { renders } = app.renderer;
    const tags = new Set<unknown>();
    for (const quality of ['', '&quality=high', '&quality=lossless', '&quality=auto', '&v=1']) {
      const { headers } = await app.get(
        `/attachments/1/3/photo?width=50&format=${format}${quality}`,
      );
      tags.add(headers.etag);
    }
    expect([tags.size, app.renderer.renders - renders]).toEqual([1, 1]);
  }
});

test('a rendering without a quality has a distinct tag, and a 304 needs no transform', async () => {
  const path = '/attachments/1/4/photo.jpg?width=50&format=webp';
  for (const { originals } of [app, strict]) {
    originals.put('attachments/1/4/photo.jpg', samples.jpeg);
  }
  const { renders } = app.renderer;
  const tagOf = async (query: string, { get } = app) => (await get(path + query)).headers.etag;
  const tag = await tagOf('');
  const others = [
    await tagOf('&quality=high'),
    await tagOf('&quality=lossless'),
    await tagOf('', strict),
  ];
  expect(new Set([tag, ...others]).size).toBe(3);
  // The strict request has quality lossless.
  expect(others[2]).toBe(others[1]);
  expect(app.renderer.renders).toBe(renders + 3);
  expect((await app.get(path)).headers['cache-status']).toBe('darkroom; hit');

  const fresh = await useExternalApp({ settings });
  fresh.originals.put('attachments/1/4/photo.jpg', samples.jpeg);
  const known = await fresh.get(path, { 'if-none-match': tag ?? '' });
  expect([known.statusCode, fresh.renderer.renders]).toEqual([304, 0]);
});

test('renders a photograph of another site with high if the quality is absent', async () => {
  const { site, urlOf, requestTarget, renderer } = await useExternalApp({ settings });
  site.serve('/photo.png', samples.jpeg);
  const request = (query: string) => requestTarget(signedPathOf(urlOf('/photo.png'), query));
  const query = 'width=60&height=40&format=webp';
  const [absent, high, lossless] = [
    await request(query),
    await request(`${query}&quality=high`),
    await request(`${query}&quality=lossless`),
  ];
  expect(absent.body.equals(high.body)).toBe(true);
  expect(absent.body.equals(lossless.body)).toBe(false);
  expect([renderer.renders, site.requests.length]).toEqual([3, 1]);
});
