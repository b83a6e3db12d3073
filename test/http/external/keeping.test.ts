import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  type ExternalApp,
  type ExternalAppOptions,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

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

const purple = await sharp({ create: { width: 60, height: 60, channels: 3, background: '#608' } })
  .jpeg()
  .toBuffer();

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
    app.clock.advance(seconds * 1_000 - 1);
    expect((await app.ask('/cat.jpg', QUERY)).header('cache-status')).toBe('darkroom; hit');
    expect(picture.unchanged).toBe(0);
    app.clock.advance(1);
    const revalidated = await app.ask('/cat.jpg', QUERY);
    expect(revalidated.header('cache-status')).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(revalidated.header('cache-control')).toBe(expected);
    expect([picture.unchanged, app.renderer.renders]).toEqual([1, 1]);
  });

  test('by Expires and Date, less the Age', async () => {
    app = await useExternalApp();
    app.site.serve('/a.jpg', samples.jpeg, {
      date: 'Sun, 06 Nov 1994 08:00:00 GMT',
      expires: 'Sun, 06 Nov 1994 12:00:00 GMT',
      age: '3600',
    });
    const response = await app.ask('/a.jpg', QUERY);
    expect(response.header('cache-control')).toBe('public, max-age=10800');
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

describe('what is asked for again', () => {
  test('costs no transform when the site says that it is unchanged, or sends the same', async () => {
    const picture = await startWithPicture();
    const first = await app.ask('/cat.jpg', QUERY);
    app.clock.advance(HOUR_MS);
    await app.ask('/cat.jpg', QUERY);
    expect([picture.sent, picture.unchanged]).toEqual([1, 1]);
    app.clock.advance(HOUR_MS);
    picture.etag = '"two"';
    const same = await app.ask('/cat.jpg', QUERY);
    expect([picture.sent, picture.unchanged]).toEqual([2, 1]);
    expect(same.header('etag')).toBe(first.header('etag'));
    expect(app.renderer.renders).toBe(1);
  });

  test('is made anew when it has changed', async () => {
    const picture = await startWithPicture();
    const first = await app.ask('/cat.jpg', QUERY);
    app.clock.advance(HOUR_MS);
    picture.body = purple;
    picture.etag = '"two"';
    const second = await app.ask('/cat.jpg', QUERY);
    expect(second.header('etag')).not.toBe(first.header('etag'));
    expect(second.body.equals(first.body)).toBe(false);
    expect(app.renderer.renders).toBe(2);
  });

  test('is found in the result store by who has not made it', async () => {
    const resultStore = new MemoryResultStore();
    const picture = await startWithPicture({ resultStore });
    const first = await app.ask('/cat.jpg', QUERY);
    await expect.poll(() => resultStore.writes).toBe(1);
    const settings = { EXTERNAL_PORTS: String(app.site.port) };
    const other = await useExternalApp({ resultStore, settings });
    const second = await other.askUrl(app.urlOf('/cat.jpg'), QUERY);
    expect(second.body.equals(first.body)).toBe(true);
    expect(second.header('etag')).toBe(first.header('etag'));
    expect([picture.sent, other.renderer.renders]).toEqual([2, 0]);
    expect(resultStore.paths[0]).toMatch(/^external\/[\w-]{43}\//);
  });

  test('is fetched once for a crowd, in whatever sizes', async () => {
    const picture = await startWithPicture();
    const queries = Array.from({ length: 12 }, (_, index) => `width=${20 + (index % 4)}`);
    const responses = await Promise.all(queries.map((query) => app.ask('/cat.jpg', query)));
    expect(responses.map(({ status }) => status)).toEqual(queries.map(() => 200));
    expect(picture.sent).toBe(1);
    expect(app.renderer.renders).toBe(4);
  });
});

describe('while the site fails', () => {
  test.each([
    ['an error', (picture: Picture) => (picture.status = 500)],
    ['a name without an address', () => app.resolver.set('site.test', [])],
    ['an address inside', () => app.resolver.set('site.test', ['10.0.0.1'])],
  ])('what was right last is served for a day: %s', async (_, fail) => {
    const picture = await startWithPicture();
    const first = await app.ask('/cat.jpg', QUERY);
    app.clock.advance(HOUR_MS);
    fail(picture);
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

  test('a failure is remembered for a minute, for the URL, whatever is asked', async () => {
    const picture = await startWithPicture();
    picture.status = 503;
    expect((await app.ask('/cat.jpg', QUERY)).status).toBe(502);
    picture.status = 200;
    app.clock.advance(59_999);
    for (const query of [QUERY, 'width=41', '']) {
      expect((await app.ask('/cat.jpg', query)).status).toBe(502);
    }
    expect(app.site.requests).toHaveLength(1);
    app.clock.advance(1);
    for (const query of [QUERY, 'width=41', '']) {
      expect((await app.ask('/cat.jpg', query)).status).toBe(200);
    }
  });

  test('that it is gone is believed', async () => {
    const picture = await startWithPicture();
    await app.ask('/cat.jpg', QUERY);
    app.clock.advance(HOUR_MS);
    picture.status = 410;
    expect((await app.ask('/cat.jpg', QUERY)).status).toBe(404);
    picture.status = 200;
    app.clock.advance(29_999);
    expect((await app.ask('/cat.jpg', QUERY)).status).toBe(404);
    app.clock.advance(1);
    expect((await app.ask('/cat.jpg', QUERY)).status).toBe(200);
  });
});
