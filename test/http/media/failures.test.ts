import { once } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Opened, Source } from '../../../src/pipeline/ports.ts';
import { collect, parseAnswer } from '../../support/http/raw-http.ts';
import { refuse } from '../../support/http/refusal.ts';
import type { LaneRenderer } from '../../support/render-slots.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';
const clip = '/attachments/1/2/clip.mp4';
const secret = new TypeError('Cannot read 10.0.0.1 of /srv/secret');

type Settings = Record<string, string>;

/** The service before an origin that does one thing for every key. */
async function startWith(open: Source['open'], settings: Settings = {}): Promise<void> {
  app = await useTestApp({ origin: { identity: 'tag', open }, settings });
}

/** The service with an original, and a renderer that does one thing for every job. */
async function startRendering(render?: LaneRenderer['render'], settings: Settings = {}) {
  app = await useTestApp({ ...(render && { renderer: { render } }), settings });
  app.originals.put(imageKey, samples.jpeg);
}

function objectOf(
  { length: sizeBytes }: Uint8Array,
  body: Readable,
  part?: { readonly first: number; readonly last: number },
): Opened {
  return { sizeBytes, etag: 'e', lastModified: undefined, part, body };
}

/** A body that comes in pieces: what is pushed. */
const openBody = () => new Readable({ read: () => undefined });

it('a render that fails gives its slot back', async () => {
  let fails = true;
  const settings = { WORKERS: '1', QUEUE_PER_WORKER: '0' };
  const render = () => (fails ? Promise.reject(secret) : Promise.resolve(samples.webp));
  await startRendering(render, settings);
  for (let time = 0; time < 3; time += 1) await refuse(app, image, 'INTERNAL_ERROR', 'no-store');
  fails = false;
  expect((await app.get(image)).statusCode).toBe(200);
});

describe('an origin that fails in the middle', () => {
  const broken = (): Readable => {
    const body: Readable = new Readable({ read: (): unknown => body.destroy(secret) });
    return body;
  };

  it('of an original, or before a part has begun, is a 502', async () => {
    await startWith(async (_key, { range }) => {
      if (range?.first !== 0) return objectOf(samples.jpeg, broken());
      const part = { first: 0, last: range.last ?? 0 };
      return objectOf(samples.mp4, Readable.from([samples.mp4.subarray(0, part.last + 1)]), part);
    });
    await refuse(app, image, 'ORIGIN_ERROR', 'no-store');
    const request = { url: clip, headers: { range: 'bytes=20000-20009' } };
    const { headers } = await refuse(app, request, 'ORIGIN_ERROR', 'no-store');
    expect(headers).not.toHaveProperty('content-range');
  });

  it('and stands still is let go', async () => {
    const body = openBody();
    body.push(samples.jpeg.subarray(0, 1000));
    const closed = once(body, 'close').catch(() => undefined);
    await startWith(async () => objectOf(samples.jpeg, body), { ORIGIN_TIMEOUT_MS: '20' });
    await refuse(app, image, 'ORIGIN_TIMEOUT', 'no-store');
    await closed;
  });

  it('and comes after its deadline is let go', async () => {
    const late = Readable.from([samples.mp4]);
    const open: Source['open'] = (_key, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(objectOf(samples.mp4, late)));
      });
    await startWith(open, { ORIGIN_FIRST_BYTE_TIMEOUT_MS: '20' });
    expect((await app.send('GET', clip)).status).toBe(504);
    await expect.poll(() => late.destroyed).toBe(true);
  });

  it.each<[string, (body: Readable) => void, RegExp]>([
    ['breaks off', (body) => body.destroy(new Error('read EIO')), /^read EIO$/],
    ['ends early', (body) => body.push(null), /20000/],
    ['does not end in time', (body) => body.push(Buffer.alloc(50_000)), /70000/],
  ])('of an attachment, and %s, is taken for no whole', async (_, finish, message) => {
    const body = openBody();
    body.push(Buffer.alloc(20_000));
    await startWith(async () => objectOf(Buffer.alloc(50_000), body));
    const { bytes, whole } = collect(await app.begin('/attachments/1/2/a'));
    await expect.poll(() => bytes().length).toBeGreaterThan(20_000);
    finish(body);
    const response = parseAnswer(await whole());
    expect([response.status, response.body.length]).toEqual([200, 20_000]);
    expect(response.headers['content-length']).toBe('50000');
    const err = { cause: { message: expect.stringMatching(message) } };
    expect(app.log.errors).toMatchObject([{ code: 'ORIGIN_ERROR', err }]);
  });
});

describe('limits and lifetimes are configuration', () => {
  const REFUSED = 'public, max-age=300';

  it.each([
    ['bytes', { MAX_ORIGINAL_BYTES: String(samples.jpeg.length - 1) }, samples.jpeg],
    ['pixels', { MAX_INPUT_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['frames', { MAX_FRAMES: '1' }, samples.animatedGif],
    ['scans', { MAX_SCAN_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['pixels an edge', { MAX_EDGE_PIXELS: '479' }, samples.jpeg],
  ])('an original of more %s', async (_, settings, bytes) => {
    await startRendering(undefined, settings);
    app.originals.put(imageKey, bytes);
    await refuse(app, image, 'MEDIA_TOO_LARGE', REFUSED);
    expect(app.renderer.renders).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  it.each(['webp?size=16', 'gif?size=16'])('a result of more bytes: %s', async (tail) => {
    const url = `/icons/1/ab.${tail}`;
    await startRendering();
    const { length } = (await app.get(url)).rawPayload;
    for (const { maxBytes, status } of [
      { maxBytes: length, status: 200 },
      { maxBytes: length - 1, status: 422 },
    ]) {
      await startRendering(undefined, { MAX_RESULT_BYTES: String(maxBytes) });
      expect((await app.get(url)).statusCode).toBe(status);
    }
  });

  it('refusals', async () => {
    const settings = { NOT_FOUND_MAX_AGE_SECONDS: '0', REFUSED_MAX_AGE_SECONDS: '9' };
    await startRendering(undefined, settings);
    app.originals.put(imageKey, samples.text);
    await refuse(app, '/nothing', 'NOT_FOUND', 'public, max-age=0');
    await refuse(app, '/emojis/x.png', 'INVALID_FORM_BODY', 'public, max-age=9');
    for (const reads of [1, 2]) {
      await refuse(app, '/emojis/1.png', 'UNKNOWN_MEDIA', 'public, max-age=0');
      expect(app.originals.reads.get('emojis/1')).toBe(reads);
    }
    for (const [waitedMs, status] of [
      [0, 'fwd=miss'],
      [8_999, 'hit'],
      [1, 'fwd=miss'],
    ] as const) {
      app.clock.advance(waitedMs);
      const { headers } = await refuse(app, image, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=9');
      expect(headers['cache-status']).toBe(`darkroom; ${status}`);
    }
  });
});
