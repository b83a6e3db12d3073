import { expect, it, test } from 'vitest';
import { useExternalApp } from '../../support/sites/external-app.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

// RFC 9110 §13.1.1, §13.1.4 and §13.2.2. test/surface generates lists and dates.

const app = await useTestApp();
const changedAt = new Date('2024-05-14T10:00:00Z');
app.originals.put('icons/1/ab', samples.jpeg, changedAt);
app.originals.put('attachments/1/2/a.txt', samples.text, changedAt);
app.originals.put('attachments/1/2/no.png', Buffer.from('no picture'), changedAt);
const later = new Date(changedAt.getTime() + 1_000).toUTCString();
const earlier = new Date(changedAt.getTime() - 1_000).toUTCString();

const routes = [
  ['a rendering', '/icons/1/ab.webp?size=16'],
  ['an unmodified original', '/attachments/1/2/a.txt'],
  ['a default avatar', '/avatars/1.png'],
] as const;

test.each(
  routes.flatMap(([name, url]) =>
    (['GET', 'HEAD'] as const).map((method) => [method, name, url] as const),
  ),
)('%s of %s returns 412 if If-Match does not match', async (method, _, url) => {
  const { headers } = await app.get(url);
  const etag = String(headers.etag);
  const request = (conditions: Record<string, string>) =>
    app.server.inject({ method, url, headers: conditions });
  const stale = await request({ 'if-match': '"other", W/"another"' });
  expect(stale.statusCode).toBe(412);
  expect(stale.headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
  });
  expect(stale.headers).not.toHaveProperty('etag');
  if (method === 'GET') expect(stale.json()).toMatchObject({ code: 'PRECONDITION_FAILED' });
  else expect(stale.body).toBe('');
  // Strong comparison never matches a weak tag.
  expect((await request({ 'if-match': `W/${etag}` })).statusCode).toBe(412);
  for (const list of [etag, `"other", ${etag}`, '*']) {
    expect((await request({ 'if-match': list })).statusCode, list).toBe(200);
  }
});

test.each(routes.slice(0, 2))(
  '%s returns 412 if it changed after If-Unmodified-Since',
  async (_, url) => {
    const { headers } = await app.get(url);
    const etag = String(headers.etag);
    const statusOf = async (conditions: Record<string, string>) =>
      (await app.get(url, conditions)).statusCode;
    expect(await statusOf({ 'if-unmodified-since': earlier })).toBe(412);
    for (const date of [changedAt.toUTCString(), later, 'yesterday']) {
      expect(await statusOf({ 'if-unmodified-since': date }), date).toBe(200);
    }
    // If-Match takes precedence over the date.
    expect(await statusOf({ 'if-match': etag, 'if-unmodified-since': earlier })).toBe(200);
  },
);

it('checks preconditions before If-None-Match, ranges and If-Range', async () => {
  for (const [, url] of routes) {
    const etag = String((await app.get(url)).headers.etag);
    const stale = { 'if-match': '"other"' };
    for (const more of [
      { 'if-none-match': etag },
      { 'if-none-match': '*' },
      { range: 'bytes=0-1' },
      { range: 'bytes=0-1', 'if-range': etag },
      { range: 'bytes=9999999-' },
    ]) {
      expect((await app.get(url, { ...stale, ...more })).statusCode, url).toBe(412);
    }
    expect((await app.get(url, { 'if-match': etag, 'if-none-match': etag })).statusCode).toBe(304);
    const range = { 'if-match': etag, range: 'bytes=0-1' };
    expect((await app.get(url, range)).statusCode).toBe(206);
  }
});

it('checks preconditions before If-None-Match even if the rendering does not exist yet', async () => {
  const url = '/icons/1/ab.webp?size=24';
  const { headers } = await app.get(url);
  const cold = await useTestApp({ origin: app.originals });
  const conditions = { 'if-match': '"other"', 'if-none-match': String(headers.etag) };
  expect((await cold.get(url, conditions)).statusCode).toBe(412);
  const since = { 'if-unmodified-since': earlier, 'if-modified-since': later };
  const other = await useTestApp({ origin: app.originals });
  expect((await other.get(url, since)).statusCode).toBe(412);
});

it('returns the error of the plain request instead of a 412 (§13.2.1)', async () => {
  const stale = { 'if-match': '"other"', 'if-unmodified-since': earlier };
  for (const [url, status] of [
    ['/icons/9/ab.webp', 404],
    ['/avatars/9.png', 404],
    ['/icons/1/ab.webp?size=17', 400],
    ['/attachments/1/2/no.png?width=16', 415],
  ] as const) {
    expect((await app.get(url, stale)).statusCode, url).toBe(status);
  }
});

it('frees the body of an original that it does not send', async () => {
  const url = '/attachments/1/2/a.txt';
  for (const headers of [{ 'if-match': '"other"' }, { 'if-match': '"other"', range: 'bytes=5-' }]) {
    expect((await app.get(url, headers)).statusCode).toBe(412);
  }
  await expect.poll(() => app.originals.openBodies).toBe(0);
});

it('compares external media with the validators of the site', async () => {
  const external = await useExternalApp();
  external.site.serveRanges('/cat.jpg', samples.jpeg);
  external.site.serve('/bare.jpg', samples.jpeg);
  for (const query of ['', 'width=50']) {
    const { headers } = await external.request('/cat.jpg', query);
    const statusOf = async (sent: Record<string, string>) =>
      (await external.request('/cat.jpg', query, { headers: sent })).status;
    expect(await statusOf({ 'if-match': '"other"' })).toBe(412);
    expect(await statusOf({ 'if-match': '"other"', range: 'bytes=0-9' })).toBe(412);
    expect(await statusOf({ 'if-match': String(headers.etag) })).toBe(200);
  }
  // Without a validator, only `*` matches.
  const bare = async (list: string) =>
    (await external.request('/bare.jpg', '', { headers: { 'if-match': list } })).status;
  expect([await bare('"one"'), await bare('*')]).toEqual([412, 200]);
});

test('the 304 of an unmodified video has the entity tag of the 200', async () => {
  const url = '/attachments/1/2/clip.webm?quality=high';
  app.originals.put('attachments/1/2/clip.webm', samples.mp4, changedAt);
  const { statusCode, headers } = await app.get(url);
  expect([statusCode, headers['content-type']]).toEqual([200, 'video/mp4']);
  for (const condition of [
    { 'if-modified-since': later },
    { 'if-none-match': `${headers.etag}` },
  ]) {
    const unchanged = await app.get(url, condition);
    expect([unchanged.statusCode, unchanged.headers.etag]).toEqual([304, headers.etag]);
  }
});
