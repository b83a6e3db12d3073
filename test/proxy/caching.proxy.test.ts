import { hash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { samples } from '../support/test-app.ts';
import { useSiteStack } from './stack.ts';

const MEBIBYTE = 1024 * 1024;
const stack = await useSiteStack();
stack.site.serveRanges('/cat.jpg', samples.jpeg);
stack.site.serveRanges('/film.mp4', Buffer.concat([samples.mp4, Buffer.alloc(20 * MEBIBYTE)]));
const external = stack.externalPath('/cat.jpg');
const avatar = '/avatars/9/qr78.webp';
const photo = '/attachments/1/1/country-lane.jpg';

/** Everything by which a client can distinguish responses. */
function essence({ status, header, body }: ClientResponse): object {
  return [status, header('content-type'), header('etag'), hash('sha256', body)];
}

/** Stores a file in which every four bytes contain their offset. */
async function putFile(path: string, sizeBytes: number): Promise<Buffer> {
  const words = Uint32Array.from({ length: Math.ceil(sizeBytes / 4) }, (_, index) => index * 7);
  const bytes = Buffer.from(words.buffer, 0, sizeBytes);
  await stack.put(path, bytes);
  return bytes;
}

test('nginx serves a hit without Darkroom, for any Cache-Control of the client', async () => {
  const target = '/avatars/1/ab12.webp?size=256';
  const miss = await stack.request(target);
  expect(miss.header('cache-status')).toBe('darkroom; fwd=miss; stored, nginx; fwd=uri-miss');
  expect(miss.header('server-timing')).toMatch(/render;dur=/);
  const headers = { 'Cache-Control': 'no-cache', Pragma: 'no-cache' };
  const hit = await stack.request(target, { headers });
  expect(hit.header('cache-status')).toBe('darkroom; fwd=miss; stored, nginx; hit');
  // Darkroom logs no stage for it.
  expect(hit.headers['server-timing']).toBeUndefined();
  expect(essence(hit)).toEqual(essence(miss));
  expect((await stack.request(target, { method: 'HEAD' })).nginx).toBe('hit');
  expect(stack.relay.requests).toMatchObject([{ status: 200, isRendered: true }]);
});

test('a HEAD fills the cache of nginx for a GET', async () => {
  await stack.request('/icons/1/ab12.webp?size=80', { method: 'HEAD' });
  const { status, nginx } = await stack.request('/icons/1/ab12.webp?size=80');
  expect([status, nginx]).toEqual([200, 'hit']);
});

describe('the cache key of nginx', () => {
  // Node writes a target byte for byte as Latin-1.
  const raw = Buffer.from('/attachments/1/9/🎉%20party.png?width=9', 'utf8').toString('latin1');
  test.each([
    ['the order of parameters', `${avatar}?size=64&quality=low`, `${avatar}?quality=low&size=64`],
    ['unknown parameters', `${avatar}?size=80`, `${avatar}?v=1&size=80&utm_source=a%20b&c`],
    ['unknown parameters alone', avatar, `${avatar}?v=2`],
    ['names in the wrong case', `${avatar}?size=96`, `${avatar}?SIZE=100&size=96&Size=128`],
    ['parameters of other kinds', `${avatar}?size=100`, `${avatar}?width=7&size=100&format=gif`],
    ['the size of an attachment', `${photo}?width=64`, `${photo}?size=128&width=64&size=256`],
    ['any parameter of a default avatar', '/avatars/3.png', '/avatars/3.png?size=64&size=1'],
    ['empty pairs', `${avatar}?size=128`, `${avatar}?&&size=128&`],
    ['needless percent-encoding', '/emojis/3.webp', '/%65mojis/%33.web%70'],
    ['raw UTF-8', '/attachments/1/9/%F0%9F%8E%89%20party.png?width=9', raw],
    [
      'order, unknown parameters or parameters of other kinds for external media',
      `${external}?width=24&format=webp`,
      `${external}?v=1&format=webp&size=8&width=24`,
    ],
  ])('does not change with %s', async (_, first, second) => {
    const before = await stack.request(first);
    const forwarded = stack.relay.requests.length;
    const after = await stack.request(second);
    expect(essence(after)).toEqual(essence(before));
    expect([after.nginx, stack.relay.requests.length]).toEqual(['hit', forwarded]);
  });

  test('does not change with the host, Authorization, cookies or any other header of a client', async () => {
    await stack.request('/emojis/4.webp', { headers: { Host: 'cdn.example.com' } });
    const headers = {
      Host: 'static.example.com',
      Authorization: 'Bearer secret',
      Cookie: 'session=secret',
      Referer: 'https://chat.example/secret',
      Accept: 'image/avif',
      'Accept-Encoding': 'gzip, br',
      'User-Agent': 'somebody',
      'X-Request-Id': 'secret',
      'CDN-Loop': 'other; v=1, another',
    };
    expect((await stack.request('/emojis/4.webp', { headers })).nginx).toBe('hit');
    stack.relay.requests.length = 0;
    await stack.request('/emojis/4.webp?size=20', { headers });
    // CDN-Loop prevents loops of external media; Range selects what nginx requests.
    for (const target of [`${external}?width=20`, external])
      await stack.request(target, { headers });
    const part = await stack.request(external, { headers: { ...headers, Range: 'bytes=0-9' } });
    expect(part.status).toBe(206);
    const usual = ['host', 'x-forwarded-for', 'x-forwarded-proto', 'x-request-id'];
    const looped = ['cdn-loop', ...usual];
    expect(stack.relay.requests.map(({ headers }) => Object.keys(headers).sort())).toEqual([
      ...[usual, looped, looped, [...looped, 'range'].sort()],
    ]);
    expect(stack.relay.requests[1]?.headers['cdn-loop']).toBe(headers['CDN-Loop']);
    expect(JSON.stringify(stack.relay.requests)).not.toContain('secret');
  });

  test('is the request that Darkroom receives', async () => {
    await stack.request(`${avatar}?animated=true&b=2&quality=low&a=1&size=300#part`);
    await stack.request(`${photo}?format=webp&height=8&quality=high&width=9&size=1`);
    await stack.request('/attachments/1/10/draft%20%231%20%2520%20c%61ts%20&%20dogs.png?width=20');
    expect(stack.relay.requests.map(({ target }) => target)).toEqual([
      `${avatar}?size=300&quality=low&animated=true`,
      `${photo}?width=9&height=8&format=webp&quality=high`,
      '/attachments/1/10/draft%20%231%20%2520%20cats%20&%20dogs.png?width=20',
    ]);
  });
});

test.each([
  ['one for a render', '/splashes/1/ab12.webp?size=1280&quality=lossless', 1],
  ['one for a slice', '/attachments/1/16/clip.webm', 1],
  ['one for the status of an error, and one for its body', '/avatars/1/missing.webp', 2],
])(
  'nginx sends few requests to Darkroom for many concurrent requests of a cold URL: %s',
  async (_, target, requests) => {
    // Separate connections, so that requests reach all nginx workers.
    const crowd = Array.from({ length: 100 }, () => stack.connect()(target));
    const responses = await Promise.all(crowd);
    expect(stack.relay.requests).toHaveLength(requests);
    const direct = essence(await stack.requestDirectly(target));
    for (const response of responses) expect(essence(response)).toEqual(direct);
  },
);

test('a purge in nginx removes exactly the responses below a path: every size, slice and error', async () => {
  const [icon, other] = ['/icons/2/cd34.webp', '/icons/3/ef56.webp'];
  const [song, refused] = ['/attachments/1/9/%F0%9F%8E%89%20party.png', `${icon}?size=63`];
  const ofSite = stack.externalPath('/cat.jpg?a=b');
  const purged = [icon, `${icon}?size=64`, song, `${song}?height=30`, `${ofSite}?width=9`];
  for (const target of [...purged, refused, other]) await stack.request(target);
  expect(stack.nginx.purge('/icons/2/cd34.')).toBe('3 removed\n');
  expect(stack.nginx.purge('/attachments/1/9/🎉 party.png')).toMatch(/^[2-9] removed\n$/);
  expect(stack.nginx.purge(ofSite)).toBe('1 removed\n');
  for (const target of purged) {
    expect(await stack.request(target), target).toMatchObject({
      status: 200,
      nginx: 'fwd=uri-miss',
    });
  }
  expect(await stack.request(refused)).toMatchObject({ status: 400, nginx: 'fwd=uri-miss' });
  expect(await stack.request(other)).toMatchObject({ status: 200, nginx: 'hit' });
});

describe('a large attachment behind nginx', () => {
  test('is fetched and cached only in the slices that a HEAD or a range needs', async () => {
    const target = '/attachments/2/64/film.bin';
    const film = await putFile(target, 16 * MEBIBYTE - 5);
    const head = await stack.request(target, { method: 'HEAD' });
    expect([head.status, head.header('content-length')]).toEqual([200, String(film.length)]);
    expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual(['bytes=0-1048575']);
    const [first, edge] = [10 * MEBIBYTE + 17, 12 * MEBIBYTE];
    const last = film.length - 1;
    for (const [range, from, to, slices] of [
      [`${first}-${first + 19}`, first, first + 19, [10]],
      [`${first + 5_000}-${first + 5_099}`, first + 5_000, first + 5_099, []],
      [`${edge - 10}-${edge + 9}`, edge - 10, edge + 9, [11, 12]],
      ['-10', last - 9, last, [15]],
      [`${last - 2}-`, last - 2, last, []],
      [`0-${2 * last}`, 0, last, [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14]],
    ] as const) {
      stack.relay.requests.length = 0;
      const part = await stack.request(target, { headers: { Range: `bytes=${range}` } });
      expect([part.status, part.header('content-range')]).toEqual([
        206,
        `bytes ${from}-${to}/${film.length}`,
      ]);
      expect(part.body.equals(film.subarray(from, to + 1)), range).toBe(true);
      const ranges = slices.map((n) => `bytes=${n * MEBIBYTE}-${(n + 1) * MEBIBYTE - 1}`);
      expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual(ranges);
    }
    stack.relay.requests.length = 0;
    const complete = await stack.request(target);
    expect([complete.status, complete.nginx, complete.body.equals(film)]).toEqual([
      200,
      'hit',
      true,
    ]);
    const etag = { 'If-None-Match': complete.header('etag') };
    expect((await stack.request(target, { headers: etag })).status).toBe(304);
    expect(stack.relay.requests).toHaveLength(0);
  });

  test('is no longer fetched after its client disconnects', async () => {
    const path = '/attachments/2/66/film.bin';
    await putFile(path, 64 * MEBIBYTE);
    const { port, certificate: ca } = stack.nginx;
    const sent = request({ host: '127.0.0.1', port, ca, path, agent: false });
    sent.on('error', () => undefined).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await once(response, 'readable');
    sent.destroy();
    let seen = -1;
    const countNew = (): number => {
      const before = seen;
      seen = stack.relay.requests.length;
      return seen - before;
    };
    await expect.poll(countNew, { interval: 300, timeout: 5_000 }).toBe(0);
    expect(seen).toBeLessThan(32);
  });

  test('never mixes old and new bytes after a replacement', async () => {
    const path = '/attachments/2/68/song.bin';
    const before = await putFile(path, 2 * MEBIBYTE);
    await stack.request(path, { headers: { Range: 'bytes=0-0' } });
    await putFile(path, 2 * MEBIBYTE - 4);
    // The first slice is old, the second one new: nginx closes the connection.
    await expect(stack.request(path)).rejects.toThrow(/aborted|closed|terminated/);
    const kept = await stack.request(path, { headers: { Range: 'bytes=4-9' } });
    expect(kept.body).toEqual(before.subarray(4, 10));
  });
});

test('nginx fetches only the requested range of an external video', async () => {
  const path = stack.externalPath('/film.mp4');
  for (const Range of ['bytes=0-1023', 'bytes=10000000-10000999', 'bytes=-7', 'bytes=99999999-']) {
    await stack.request(path, { headers: { Range } });
  }
  await stack.request(path, { method: 'HEAD' });
  const bytes = stack.relay.requests.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0);
  expect(bytes).toBeLessThan(10_000);
});
