import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { collect, parseResponse } from '../../support/http/raw-http.ts';
import { refuse } from '../../support/http/refusal.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';
const clip = '/attachments/1/2/clip.mp4';

async function start(settings: Readonly<Record<string, string>> = {}) {
  const app = await useTestApp({ settings });
  app.originals.put(imageKey, samples.jpeg);
  app.originals.put(clip.slice(1), samples.mp4);
  return app;
}

// test/cache covers origins that fail, hang or send too little. These tests are for bodies that have begun.
describe('an origin that fails during a body', () => {
  it('causes a 502 if the requested range has not begun', async () => {
    const app = await start();
    app.originals.alter = (object) => {
      const cause = new TypeError('Cannot read 10.0.0.1 of /srv/secret');
      const body: Readable = new Readable({ read: () => void body.destroy(cause) });
      return object.part?.first === 0 ? object : { ...object, body };
    };
    const range = { range: 'bytes=20000-20009' };
    const headers = await refuse(app, clip, 'ORIGIN_ERROR', 'no-store', range);
    expect(headers).not.toHaveProperty('content-range');
  });

  it('is disconnected if it stalls', async () => {
    const app = await start({ ORIGIN_TIMEOUT_MS: '20' });
    const body = new PassThrough();
    body.write(samples.jpeg.subarray(0, 1000));
    const closed = once(body, 'close').catch(() => undefined);
    app.originals.alter = (object) => ({ ...object, body });
    await refuse(app, image, 'ORIGIN_TIMEOUT', 'no-store');
    await closed;
  });

  it('is disconnected if it responds after its deadline', async () => {
    const app = await start({ ORIGIN_FIRST_BYTE_TIMEOUT_MS: '20' });
    const late = Readable.from([samples.mp4]);
    app.originals.alter = async (object) => {
      await sleep(100);
      return { ...object, body: late };
    };
    expect((await app.send('GET', clip)).status).toBe(504);
    await expect.poll(() => late.destroyed).toBe(true);
  });

  it.each<[string, (body: PassThrough) => void, RegExp]>([
    ['breaks off', (body) => body.destroy(new Error('read EIO')), /^read EIO$/],
    ['ends early', (body) => body.end(), /20000/],
    ['does not end in time', (body) => body.write(Buffer.alloc(50_000)), /70000/],
  ])('is never mistaken for a complete attachment if it %s', async (_, finish, message) => {
    const app = await start();
    app.originals.put('attachments/1/2/a', Buffer.alloc(50_000));
    const body = new PassThrough();
    body.write(Buffer.alloc(20_000));
    app.originals.alter = (object) => ({ ...object, body });
    const { bytes, allBytes } = collect(await app.begin('/attachments/1/2/a'));
    await expect.poll(() => bytes().length).toBeGreaterThan(20_000);
    finish(body);
    const response = parseResponse(await allBytes());
    expect([response.status, response.body.length]).toEqual([200, 20_000]);
    expect(response.headers['content-length']).toBe('50000');
    const err = { cause: { message: expect.stringMatching(message) } };
    expect(app.log.errors).toMatchObject([{ code: 'ORIGIN_ERROR', err }]);
  });
});

describe('limits and lifetimes are configurable', () => {
  it.each([
    ['bytes', { MAX_ORIGINAL_BYTES: String(samples.jpeg.length - 1) }, samples.jpeg],
    ['pixels', { MAX_INPUT_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['frames', { MAX_FRAMES: '1' }, samples.animatedGif],
    ['scans', { MAX_SCAN_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['pixels on one edge', { MAX_EDGE_PIXELS: '479' }, samples.jpeg],
  ])('rejects an original with more %s', async (_, settings, bytes) => {
    const app = await start(settings);
    app.originals.put(imageKey, bytes);
    await refuse(app, image, 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect(app.renderer.renders).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  it.each(['webp?size=16', 'gif?size=16'])('rejects a result with more bytes: %s', async (tail) => {
    const get = async (settings?: Record<string, string>) =>
      (await start(settings)).get(`/icons/1/ab.${tail}`);
    const { length } = (await get()).rawPayload;
    expect((await get({ MAX_RESULT_BYTES: String(length) })).statusCode).toBe(200);
    expect((await get({ MAX_RESULT_BYTES: String(length - 1) })).statusCode).toBe(422);
  });

  it('returns responses with the configured lifetimes', async () => {
    const app = await start({
      ...{ MEDIA_MAX_AGE_SECONDS: '7', DEFAULT_AVATAR_MAX_AGE_SECONDS: '60', ROBOTS_TAG: '' },
      ...{ NOT_FOUND_MAX_AGE_SECONDS: '0', REFUSED_MAX_AGE_SECONDS: '0' },
    });
    app.originals.put('emojis/2', samples.png);
    const { headers } = await app.get('/emojis/2.png');
    expect(headers['cache-control']).toBe('public, max-age=7, immutable');
    expect(headers).not.toHaveProperty('x-robots-tag');
    const avatar = await app.get('/avatars/3.png');
    expect(avatar.headers['cache-control']).toBe('public, max-age=60');
    app.originals.put(imageKey, samples.text);
    await refuse(app, '/nothing', 'NOT_FOUND', 'public, max-age=0');
    await refuse(app, '/emojis/x.png', 'INVALID_FORM_BODY', 'public, max-age=0');
    for (const reads of [1, 2]) {
      await refuse(app, '/emojis/1.png', 'UNKNOWN_MEDIA', 'public, max-age=0');
      expect(app.originals.reads.get('emojis/1')).toBe(reads);
    }
    // Lifetimes for HTTP caches do not affect what the service remembers.
    for (const [waitedMs, status] of [
      [0, 'fwd=miss'],
      [299_999, 'hit'],
      [1, 'fwd=miss'],
    ] as const) {
      app.clock.advance(waitedMs);
      const headers = await refuse(app, image, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=0');
      expect(headers['cache-status']).toBe(`darkroom; ${status}`);
    }
  });
});
