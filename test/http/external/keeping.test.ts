import { expect, test } from 'vitest';
import { PausedRenderer } from '../../support/paused-renderer.ts';
import { useExternalApp } from '../../support/sites/external-app.ts';
import { readSample, samples } from '../../support/test-app.ts';

const HOUR_MS = 3_600_000;
const QUERY = 'width=40&format=png';
const dates = { date: 'Sun, 06 Nov 1994 08:00:00 GMT', expires: 'Sun, 06 Nov 1994 12:00:00 GMT' };
const digits = '9'.repeat(400);

test("external media are cached for the site's max-age, within the operator's limits", async () => {
  const settings = { EXTERNAL_MIN_AGE_SECONDS: '3000', EXTERNAL_MAX_AGE_SECONDS: '500000' };
  const { request, site } = await useExternalApp({ settings });
  for (const [cacheControl, seconds, others = {}] of [
    ['', 3_000],
    ['max-age=60', 3_000],
    ['max-age=7200', 7_200],
    ['public, MAX-AGE="7200"', 7_200],
    ['max-age=60, s-maxage=9000', 9_000],
    ['s-maxage=9000, max-age=99999', 9_000],
    ['max-age=31536000, immutable', 500_000],
    ['max-age=99999999999999999999', 500_000],
    ['max-age=-1', 3_000],
    ['max-age=abc', 3_000],
    ['no-store', 3_000],
    ['no-cache, max-age=7200', 3_000],
    ['private, max-age=7200', 3_000],
    ['', 10_800, { ...dates, age: '3600' }],
    ['', 14_400, { ...dates, age: 'soon' }],
    [`max-age=${digits}`, 3_000, { age: digits }],
  ] as const) {
    const path = `/${site.handlers.size}.jpg`;
    const own = cacheControl === '' ? {} : { 'cache-control': cacheControl };
    site.serve(path, samples.jpeg, { ...own, ...others });
    for (const query of [QUERY, '']) {
      const kept = (await request(path, query)).header('cache-control');
      expect(kept, cacheControl).toBe(`public, max-age=${seconds}`);
    }
  }
});

test("freshness counts from the site's response, and has a minimum", async () => {
  const { request, clock, site } = await useExternalApp();
  const headers = { 'cache-control': 'max-age=10000', etag: '"one"' };
  site.serveRanges('/cat.jpg', samples.jpeg, headers);
  const film = Buffer.concat([samples.mp4, Buffer.alloc(200_000)]);
  site.serveRanges('/film.mp4', film, headers);
  const range = { headers: { range: 'bytes=100000-100009' } };
  const lifetimes = async () =>
    Promise.all(
      [request('/cat.jpg', QUERY), request('/film.mp4', '', range), request('/cat.jpg')].map(
        async (response) => (await response).header('cache-control'),
      ),
    );
  const untransformed = 'public, max-age=10000'; // requested from the site each time
  for (const [waitedMs, seconds] of [
    [0, 10_000],
    [1_500, 9_998],
    [3_998_500, 6_000],
    [4_000_000, 3_600],
    [2_001_000, 10_000],
  ] as const) {
    clock.advance(waitedMs);
    const left = `public, max-age=${seconds}`;
    expect(await lifetimes()).toEqual([left, left, untransformed]);
  }
});

test('revalidated animations are fetched once for concurrent requests of another size', async () => {
  const settings = { WORKERS: '1', QUEUE_PER_WORKER: '0', CACHE_ORIGINALS_BYTES: '0' };
  const renderer = new PausedRenderer();
  const { request, clock, site } = await useExternalApp({ renderer, settings });
  const moon = readSample('attachments/1/6/moon.gif');
  for (const path of ['/cat.gif', '/other.gif']) site.serve(path, moon, { etag: '"one"' });
  const animated = 'format=gif&animated=true&width=240';
  expect((await request('/cat.gif', animated)).status).toBe(200);
  clock.advance(HOUR_MS);
  renderer.held = 'heavy';
  const crowd = request('/other.gif', animated);
  await expect.poll(() => renderer.jobs.length).toBe(1);
  expect((await request('/cat.gif', `${animated}&height=100`)).status).toBe(503);
  renderer.release();
  await crowd;
  const requests = site.requests.map(({ url, headers }) => [url, headers['if-none-match']]);
  expect(requests).toEqual(['/cat.gif', '/other.gif', '/cat.gif'].map((path) => [path, undefined]));
});

// test/cache covers failing sites. These failures precede the connection.
test.each([
  ['a name that does not resolve', []],
  ['a private address', ['10.0.0.1']],
])('serves the last good response for a day: %s', async (_, addresses) => {
  const { request, clock, resolver, site } = await useExternalApp();
  site.serve('/cat.jpg', samples.jpeg, { etag: '"one"' });
  const first = await request('/cat.jpg', QUERY);
  clock.advance(HOUR_MS);
  resolver.set('site.test', addresses);
  // An open connection would be reused.
  site.dropConnections();
  for (const waitedMs of [0, 10_000, 23 * HOUR_MS]) {
    clock.advance(waitedMs);
    const response = await request('/cat.jpg', QUERY);
    expect(response.status).toBe(200);
    expect(response.body.equals(first.body)).toBe(true);
    expect(response.header('cache-status')).toContain('detail=stale-if-error');
    expect(response.header('cache-control')).toBe('public, max-age=3600');
  }
  clock.advance(HOUR_MS);
  expect((await request('/cat.jpg', QUERY)).status).toBe(502);
});
