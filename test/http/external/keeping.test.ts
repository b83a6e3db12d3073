import { describe, expect, test } from 'vitest';
import { HeldRenderer } from '../../support/held-renderer.ts';
import {
  type ExternalApp,
  type ExternalAppOptions,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import { readSample, samples } from '../../support/test-app.ts';

const HOUR_MS = 3_600_000;
const QUERY = 'width=40&format=png';

let app: ExternalApp;

/** A picture with a validator, as a site should serve it; counts what it had to send. */
class Picture {
  body = samples.jpeg;
  etag = '"one"';
  cacheControl = '';
  status = 200;
  sent = 0;
  unchanged = 0;

  constructor(path = '/cat.jpg') {
    app.site.handlers.set(path, ({ headers }, response) => {
      const fields = {
        ...(this.etag && { etag: this.etag }),
        ...(this.cacheControl && { 'cache-control': this.cacheControl }),
      };
      if (this.status !== 200) response.writeHead(this.status, fields).end();
      else if (this.etag !== '' && headers['if-none-match'] === this.etag) {
        this.unchanged += 1;
        response.writeHead(304, fields).end();
      } else {
        this.sent += 1;
        response.writeHead(200, { ...fields, 'content-length': this.body.length }).end(this.body);
      }
    });
  }
}

async function startWithPicture(options: ExternalAppOptions = {}): Promise<Picture> {
  app = await useExternalApp(options);
  return new Picture();
}

describe('how long it is kept', () => {
  test.each([
    ['', 3_600],
    ['max-age=60', 3_600],
    ['max-age=7200', 7_200],
    ['public, MAX-AGE="7200"', 7_200],
    ['max-age=60, s-maxage=9000', 9_000],
    ['s-maxage=9000, max-age=99999', 9_000],
    ['max-age=31536000, immutable', 604_800],
    ['max-age=99999999999999999999', 604_800],
    ['max-age=-1', 3_600],
    ['max-age=abc', 3_600],
    ['no-store', 3_600],
    ['no-cache, max-age=7200', 3_600],
    ['private, max-age=7200', 3_600],
  ])('Cache-Control: %s', async (cacheControl, seconds) => {
    const picture = await startWithPicture();
    picture.cacheControl = cacheControl;
    const expected = `public, max-age=${seconds}`;
    expect((await app.ask('/cat.jpg', QUERY)).header('cache-control')).toBe(expected);
    expect((await app.ask('/cat.jpg')).header('cache-control')).toBe(expected);
  });

  test.each([
    ['3600', 10_800],
    ['soon', 14_400],
  ])('by Expires and Date, less the Age: %s', async (age, seconds) => {
    app = await useExternalApp();
    app.site.serve('/a.jpg', samples.jpeg, {
      ...{ date: 'Sun, 06 Nov 1994 08:00:00 GMT', expires: 'Sun, 06 Nov 1994 12:00:00 GMT' },
      age,
    });
    const response = await app.ask('/a.jpg', QUERY);
    expect(response.header('cache-control')).toBe(`public, max-age=${seconds}`);
  });

  test('at least as long as the operator says, where both numbers are too long for one', async () => {
    app = await useExternalApp();
    const digits = '9'.repeat(400);
    const headers = { 'cache-control': `max-age=${digits}`, age: digits };
    app.site.serve('/a.jpg', samples.jpeg, headers);
    const response = await app.ask('/a.jpg');
    expect(response.header('cache-control')).toBe('public, max-age=3600');
  });

  test('within bounds of the operator', async () => {
    const settings = { EXTERNAL_MIN_AGE_SECONDS: '10', EXTERNAL_MAX_AGE_SECONDS: '20' };
    const picture = await startWithPicture({ settings });
    expect((await app.ask('/cat.jpg', QUERY)).header('cache-control')).toBe('public, max-age=10');
    app.clock.advance(10_000);
    picture.cacheControl = 'max-age=100';
    expect((await app.ask('/cat.jpg', QUERY)).header('cache-control')).toBe('public, max-age=20');
  });
});

test('what is asked for again is fetched once for another size in a crowd of animations', async () => {
  const settings = { WORKERS: '1', QUEUE_PER_WORKER: '0', CACHE_ORIGINALS_BYTES: '0' };
  const renderer = new HeldRenderer();
  const picture = await startWithPicture({ renderer, settings });
  picture.body = readSample('attachments/1/6/moon.gif');
  const other = new Picture('/other.gif');
  other.body = picture.body;
  const animated = 'format=gif&animated=true&width=240';
  expect((await app.ask('/cat.jpg', animated)).status).toBe(200);
  app.clock.advance(HOUR_MS);
  renderer.held = 'heavy';
  const crowd = app.ask('/other.gif', animated);
  await expect.poll(() => renderer.jobs.length).toBe(1);
  expect((await app.ask('/cat.jpg', `${animated}&height=100`)).status).toBe(503);
  renderer.release();
  await crowd;
  expect([picture.sent, picture.unchanged]).toEqual([2, 0]);
});

describe('while the site fails', () => {
  test.each([
    ['a name without an address', () => app.resolver.set('site.test', [])],
    ['an address inside', () => app.resolver.set('site.test', ['10.0.0.1'])],
  ])('what was right last is served for a day: %s', async (_, fail) => {
    await startWithPicture();
    const first = await app.ask('/cat.jpg', QUERY);
    app.clock.advance(HOUR_MS);
    fail();
    // A connection that was kept would be used as long as it lasts.
    app.site.dropConnections();
    for (const waitedMs of [0, 10_000, 23 * HOUR_MS]) {
      app.clock.advance(waitedMs);
      const response = await app.ask('/cat.jpg', QUERY);
      expect(response.status).toBe(200);
      expect(response.body.equals(first.body)).toBe(true);
      expect(response.header('cache-status')).toContain('detail=stale-if-error');
      expect(response.header('cache-control')).toBe('public, max-age=3600');
    }
    app.clock.advance(HOUR_MS);
    expect((await app.ask('/cat.jpg', QUERY)).status).toBe(502);
  });
});
