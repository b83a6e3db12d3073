import { beforeEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const url = '/icons/1/ab.webp?size=16';
const key = 'icons/1/ab';
const REVALIDATE_MS = 300_000; // the default of CACHE_REVALIDATE_SECONDS

let app: TestApp;
let origin: MemoryOrigin;

beforeEach(() => start());

async function start(settings: Record<string, string> = {}): Promise<void> {
  app = await useTestApp({ settings });
  origin = app.originals;
  origin.put(key, samples.jpeg);
}

function get(headers: Record<string, string> = {}) {
  return app.get(url, headers);
}

describe('a kept result', () => {
  it('is served without a question until the revalidation time is over', async () => {
    const first = await get();
    origin.put(key, samples.png);
    app.clock.advance(REVALIDATE_MS - 1);
    const again = await get();
    expect(again.headers['cache-status']).toBe('darkroom; hit');
    expect(again.rawPayload.equals(first.rawPayload)).toBe(true);
    expect(origin.reads.get(key)).toBe(1);
  });

  it('is served on, unrendered, if its original is unchanged', async () => {
    const first = await get();
    app.clock.advance(REVALIDATE_MS);
    const again = await get();
    expect(again.statusCode).toBe(200);
    expect(again.headers['cache-status']).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(again.headers['server-timing']).toBe('store;dur=0, origin;dur=0');
    expect(again.headers.etag).toBe(first.headers.etag);
    expect(again.rawPayload.equals(first.rawPayload)).toBe(true);
    expect(app.renderer.renders).toBe(1);

    // And is fresh for another while.
    app.clock.advance(REVALIDATE_MS - 1);
    expect((await get()).headers['cache-status']).toBe('darkroom; hit');
    expect(origin.reads.get(key)).toBe(2);
  });

  it('is made anew if its original was replaced', async () => {
    const first = await get();
    origin.put(key, samples.png, new Date('2024-02-29T12:30:15Z'));
    app.clock.advance(REVALIDATE_MS);
    const again = await get();
    expect(again.statusCode).toBe(200);
    expect(again.headers['cache-status']).toBe('darkroom; fwd=stale; stored');
    expect(again.headers['server-timing']).toMatch(/^store;.*, origin;.*, queue;.*, render;/);
    expect(again.headers.etag).not.toBe(first.headers.etag);
    expect(again.headers['last-modified']).toBe('Thu, 29 Feb 2024 12:30:15 GMT');
    expect(again.rawPayload.equals(first.rawPayload)).toBe(false);
    expect(app.renderer.renders).toBe(2);
    expect((await get()).headers['cache-status']).toBe('darkroom; hit');
  });

  it('is gone if its original is', async () => {
    await get();
    origin.delete(key);
    app.clock.advance(REVALIDATE_MS);
    const response = await get();
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({ code: 'UNKNOWN_MEDIA' });
  });

  it('is gone for as long as the response says, and then looked for again', async () => {
    origin.delete(key);
    const missing = await get();
    expect(missing.statusCode).toBe(404);
    expect(missing.headers['cache-control']).toBe('public, max-age=30');
    origin.put(key, samples.jpeg);
    app.clock.advance(29_999);
    const still = await app.get('/icons/1/ab.png?size=64');
    expect(still.statusCode).toBe(404);
    expect(still.headers['cache-status']).toBe('darkroom; hit');
    expect(origin.reads.get(key)).toBe(1);
    app.clock.advance(1);
    expect((await get()).statusCode).toBe(200);
  });

  it('is checked once for all who ask at the same time', async () => {
    await get();
    app.clock.advance(REVALIDATE_MS);
    const responses = await Promise.all(Array.from({ length: 50 }, () => get()));
    expect(origin.reads.get(key)).toBe(2);
    expect(app.renderer.renders).toBe(1);
    const statuses = responses.map(({ headers }) => headers['cache-status']).sort();
    expect(statuses[0]).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(new Set(statuses.slice(1))).toEqual(
      new Set(['darkroom; fwd=stale; fwd-status=304; collapsed']),
    );
  });

  it('is checked for a conditional request too, and not rendered for it', async () => {
    const { headers } = await get();
    const conditions = { 'if-none-match': String(headers.etag) };
    app.clock.advance(REVALIDATE_MS);
    expect((await get(conditions)).statusCode).toBe(304);
    expect((await get()).headers['cache-status']).toBe('darkroom; hit');

    origin.put(key, samples.png);
    app.clock.advance(REVALIDATE_MS);
    const replaced = await get(conditions);
    expect(replaced.statusCode).toBe(200);
    expect(app.renderer.renders).toBe(2);
    const current = { 'if-none-match': String(replaced.headers.etag) };
    expect((await get(current)).statusCode).toBe(304);
    expect(app.renderer.renders).toBe(2);
  });

  it('is asked after each time where the revalidation time is 0', async () => {
    await start({ CACHE_REVALIDATE_SECONDS: '0' });
    await get();
    expect((await get()).headers['cache-status']).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(app.renderer.renders).toBe(1);
  });
});

describe('while the origin fails', () => {
  beforeEach(async () => {
    await get();
    origin.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    app.clock.advance(REVALIDATE_MS);
  });

  it('what is known is served, and its headers say so', async () => {
    const during = await get();
    expect(during.statusCode).toBe(200);
    expect(during.headers['cache-status']).toBe('darkroom; fwd=stale; detail=stale-if-error');
    const conditional = await get({ 'if-none-match': String(during.headers.etag) });
    expect(conditional.statusCode).toBe(304);
    origin.failure = undefined;
    app.clock.advance(5_000);
    const after = await get();
    expect(after.headers['cache-status']).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(app.renderer.renders).toBe(1);
  });

  it('it is left alone for five seconds', async () => {
    await get();
    expect(origin.reads.get(key)).toBe(2);
    app.clock.advance(4_999);
    expect((await get()).headers['cache-status']).toBe('darkroom; hit; detail=stale-if-error');
    expect(origin.reads.get(key)).toBe(2);
    app.clock.advance(1);
    expect((await get()).headers['cache-status']).toContain('fwd=stale');
    expect(origin.reads.get(key)).toBe(3);
  });

  it('what is not known is an error', async () => {
    const response = await app.get('/icons/1/ab.png?size=64');
    expect(response.statusCode).toBe(502);
    expect(response.headers['cache-control']).toBe('no-store');
  });

  it('nothing is served for more than a day after it was seen', async () => {
    app.clock.advance(86_400_000 - REVALIDATE_MS - 1);
    expect((await get()).statusCode).toBe(200);
    app.clock.advance(1);
    expect((await get()).statusCode).toBe(502);
  });

  it('what is gone is not served', async () => {
    origin.failure = new MediaError('UNKNOWN_MEDIA');
    expect((await get()).statusCode).toBe(404);
    origin.failure = new MediaError('ORIGIN_TIMEOUT');
    app.clock.advance(30_000);
    expect((await get()).statusCode).toBe(504);
  });
});

describe('an original', () => {
  const sizes = [16, 20, 22, 24, 28, 32];
  const ask = (size: number) => app.get(`/icons/1/ab.webp?size=${size}`);

  it('is read once for all the sizes that are asked for at once', async () => {
    const responses = await Promise.all(sizes.map(ask));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(sizes.map(() => 200));
    expect(origin.reads.get(key)).toBe(1);
    expect(app.renderer.renders).toBe(sizes.length);
  });

  it('is read once for all the sizes that are asked for soon after', async () => {
    for (const size of sizes) expect((await ask(size)).statusCode).toBe(200);
    expect(origin.reads.get(key)).toBe(1);
    const { headers } = await ask(40);
    expect(headers['server-timing']).not.toContain('origin');
    // Later, it is asked whether it is the same, once for those that were made and for one that was not.
    app.clock.advance(REVALIDATE_MS);
    for (const size of [...sizes, 44]) expect((await ask(size)).statusCode).toBe(200);
    expect(origin.reads.get(key)).toBe(2);
    expect(origin.bytesAskedFor.get(key)).toBe(samples.jpeg.length + 1);
    expect(app.renderer.renders).toBe(sizes.length + 2);
  });

  it('is not kept where that is switched off', async () => {
    await start({ CACHE_ORIGINALS_BYTES: '0' });
    for (const size of sizes) expect((await ask(size)).statusCode).toBe(200);
    expect(origin.reads.get(key)).toBe(sizes.length);
  });
});
