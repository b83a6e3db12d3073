import { beforeEach, describe, expect, it } from 'vitest';
import { refuse } from '../../support/http/refusal.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;
beforeEach(async () => {
  app = await useTestApp();
});

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';

describe('400 INVALID_FORM_BODY', () => {
  it('names all faults of path and query, and reads nothing', async () => {
    const url = '/avatars/01/!.bmp?size=123&quality=HIGH&animated=1&v=1';
    const { errors } = await refuse(app, url, 'INVALID_FORM_BODY', 'public, max-age=300');
    const names = ['user_id', 'avatar_hash', 'ext', 'size', 'quality', 'animated'];
    expect(errors.map(({ path }) => path)).toEqual(names);
    for (const fault of errors) {
      expect(Object.keys(fault).sort()).toEqual(['message', 'path']);
      expect(fault.message.length).toBeGreaterThan(10);
    }
    expect(app.originals.reads.size).toBe(0);
    expect(app.log.entries).toEqual([]);
  });
});

describe('404', () => {
  it('NOT_FOUND: a path that is no template', async () => {
    await refuse(app, '/favicon.ico', 'NOT_FOUND', 'public, max-age=30');
  });

  it.each([
    '/avatars/1/ab.png',
    '/stickers/1.webp',
    '/attachments/1/2/a.txt',
    '/attachments/1/2/a?width=1',
  ])('UNKNOWN_MEDIA: %s is not there', async (url) => {
    await refuse(app, url, 'UNKNOWN_MEDIA', 'public, max-age=30');
    expect([...app.originals.reads.values()]).toEqual([1]);
    expect(app.log.entries).toEqual([]);
  });
});

describe('415 UNSUPPORTED_MEDIA_TYPE', () => {
  it.each([
    ['an asset that is no image', image, imageKey, samples.text],
    ['an asset that is an SVG', image, imageKey, samples.svg],
    ['an empty asset', image, imageKey, Buffer.alloc(0)],
    [
      'a video that is to be scaled',
      '/attachments/1/2/v?width=9',
      'attachments/1/2/v',
      samples.mp4,
    ],
    ['a PDF as PNG', '/attachments/1/2/v?format=png', 'attachments/1/2/v', samples.pdf],
    ['an SVG attachment as PNG', '/attachments/1/2/v?format=png', 'attachments/1/2/v', samples.svg],
  ])('%s', async (_, url, key, bytes) => {
    app.originals.put(key, bytes);
    await refuse(app, url, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=300');
    expect(app.renderer.renders).toBe(0);
  });
});

describe('422', () => {
  it.each([
    ['bytes', { MAX_ORIGINAL_BYTES: String(samples.jpeg.length - 1) }, samples.jpeg],
    ['pixels', { MAX_INPUT_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['frames', { MAX_FRAMES: '1' }, samples.animatedGif],
    ['scans', { MAX_SCAN_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['pixels an edge', { MAX_EDGE_PIXELS: '479' }, samples.jpeg],
  ])('MEDIA_TOO_LARGE: more %s than allowed', async (_, settings, bytes) => {
    app = await useTestApp({ settings });
    app.originals.put(imageKey, bytes);
    await refuse(app, image, 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect(app.renderer.renders).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  it('MEDIA_TOO_LARGE holds for what would pass through, and not for a passthrough attachment', async () => {
    app = await useTestApp({ settings: { MAX_INPUT_PIXELS: String(128 * 128 - 1) } });
    app.originals.put('emojis/1', samples.png);
    app.originals.put('attachments/1/2/p.png', samples.png);
    await refuse(app, '/emojis/1.png', 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect((await app.get('/attachments/1/2/p.png')).statusCode).toBe(200);
  });

  it.each([
    ['/emojis/1.webp', samples.jpeg],
    ['/emojis/1.gif?size=64', samples.animatedGif],
  ])('MEDIA_TOO_LARGE: a result of more bytes than allowed, as %s', async (url, bytes) => {
    app.originals.put('emojis/1', bytes);
    const { length } = (await app.get(url)).rawPayload;
    for (const { maxBytes, status } of [
      { maxBytes: length, status: 200 },
      { maxBytes: length - 1, status: 422 },
    ]) {
      app = await useTestApp({ settings: { MAX_RESULT_BYTES: String(maxBytes) } });
      app.originals.put('emojis/1', bytes);
      expect((await app.get(url)).statusCode).toBe(status);
      if (status === 422) await refuse(app, url, 'MEDIA_TOO_LARGE', 'public, max-age=300');
    }
  });

  it.each([
    ['jpeg', samples.jpeg],
    ['png', samples.png],
    ['webp', samples.webp],
    ['gif', samples.animatedGif],
  ])('UNPROCESSABLE_MEDIA: a truncated %s, found out once in its lifetime', async (_, bytes) => {
    app.originals.put(imageKey, bytes.subarray(0, Math.floor(bytes.length / 2)));
    for (const { afterMs, reads } of [
      { afterMs: 0, reads: 1 },
      { afterMs: 299_999, reads: 1 },
      { afterMs: 1, reads: 2 },
    ]) {
      app.clock.advance(afterMs);
      const { headers } = await refuse(app, image, 'UNPROCESSABLE_MEDIA', 'public, max-age=300');
      expect(app.originals.reads.get(imageKey)).toBe(reads);
      expect(headers['cache-status']).toMatch(
        afterMs === 299_999 ? /^darkroom; hit$/ : /^darkroom; fwd=miss$/,
      );
    }
    expect(app.log.errors).toEqual([]);
  });
});

describe('the lifetimes of refusals', () => {
  it('are configuration', async () => {
    const settings = { NOT_FOUND_MAX_AGE_SECONDS: '0', REFUSED_MAX_AGE_SECONDS: '9' };
    app = await useTestApp({ settings });
    app.originals.put(imageKey, samples.text);
    await refuse(app, '/nothing', 'NOT_FOUND', 'public, max-age=0');
    await refuse(app, '/emojis/1.png', 'UNKNOWN_MEDIA', 'public, max-age=0');
    await refuse(app, '/emojis/x.png', 'INVALID_FORM_BODY', 'public, max-age=9');
    await refuse(app, image, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=9');
  });
});
