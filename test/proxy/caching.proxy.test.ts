import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { useStack } from './stack.ts';

const stack = await useStack();

/** All that a client can tell one response from another by. */
function essence({ status, header, body }: ClientResponse): object {
  const sha256 = createHash('sha256').update(body).digest('hex');
  return { status, type: header('content-type'), etag: header('etag'), sha256 };
}

/** Lets two targets be asked one after the other, and returns whether one cache entry served both. */
async function shareOneEntry(first: string, second: string): Promise<boolean> {
  const before = await stack.ask(first);
  const forwarded = stack.relay.requests.length;
  const after = await stack.ask(second);
  expect(essence(after)).toEqual(essence(before));
  return after.nginx === 'hit' && stack.relay.requests.length === forwarded;
}

describe('a hit', () => {
  test('costs Darkroom no request', async () => {
    const miss = await stack.ask('/avatars/1/ab12.webp?size=256');
    expect(miss.nginx).toBe('fwd=uri-miss');
    expect(miss.header('cache-status')).toBe('darkroom; fwd=miss; stored, nginx; fwd=uri-miss');
    expect(miss.header('server-timing')).toMatch(/render;dur=/);

    const hit = await stack.ask('/avatars/1/ab12.webp?size=256');
    expect(hit.header('cache-status')).toBe('darkroom; fwd=miss; stored, nginx; hit');
    // Of a request that entered no stage of Darkroom.
    expect(hit.headers['server-timing']).toBeUndefined();
    expect(essence(hit)).toEqual(essence(miss));
    expect(stack.relay.requests).toMatchObject([{ status: 200, isRendered: true }]);
  });

  test('serves HEAD from what GET has left, and GET from what HEAD has', async () => {
    const path = '/icons/1/ab12.webp';
    const get = await stack.ask(`${path}?size=64`);
    const head = await stack.ask(`${path}?size=64`, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, nginx: 'hit', body: Buffer.alloc(0) });
    expect(head.header('content-length')).toBe(String(get.body.length));
    expect(head.header('etag')).toBe(get.header('etag'));

    const coldHead = await stack.ask(`${path}?size=80`, { method: 'HEAD' });
    const laterGet = await stack.ask(`${path}?size=80`);
    expect(laterGet.nginx).toBe('hit');
    expect(coldHead.header('content-length')).toBe(String(laterGet.body.length));
    expect(stack.relay.requests.map(({ method }) => method)).toEqual(['GET', 'GET']);
  });

  test('is not to be talked out of by a client', async () => {
    await stack.ask('/emojis/2.png');
    const headers = { 'Cache-Control': 'no-cache', Pragma: 'no-cache' };
    expect((await stack.ask('/emojis/2.png', { headers })).nginx).toBe('hit');
    expect(stack.relay.requests).toHaveLength(1);
  });
});

describe('the cache key', () => {
  const avatar = '/avatars/9/qr78.webp';
  const photo = '/attachments/1/1/country-lane.jpg';

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
    ['raw UTF-8', '/attachments/1/9/%F0%9F%8E%89%20party.png?width=9', rawUtf8Path('?width=9')],
  ])('has no part for %s', async (_, first, second) => {
    expect(await shareOneEntry(first, second)).toBe(true);
  });

  test('has no part for the host, Authorization, cookies or anything else a client says', async () => {
    await stack.ask('/emojis/4.webp', { headers: { Host: 'cdn.example.com' } });
    const headers = {
      Host: 'static.example.com',
      Authorization: 'Bearer secret',
      Cookie: 'session=secret',
      Accept: 'image/avif',
      'Accept-Encoding': 'gzip, br',
      'User-Agent': 'somebody',
    };
    expect((await stack.ask('/emojis/4.webp', { headers })).nginx).toBe('hit');

    await stack.ask('/emojis/4.webp?size=20', { headers });
    const names = Object.keys(stack.relay.requests[1]?.headers ?? {}).sort();
    expect(names).toEqual(['host', 'x-forwarded-for', 'x-forwarded-proto', 'x-request-id']);
    expect(JSON.stringify(stack.relay.requests)).not.toContain('secret');
  });

  test("has no part for the id of a request, which is nginx's own, and the same in Darkroom", async () => {
    const headers = { 'X-Request-Id': 'from-a-client' };
    const miss = await stack.ask('/emojis/4.webp?size=24', { headers });
    const hit = await stack.ask('/emojis/4.webp?size=24', { headers });
    expect(hit.nginx).toBe('hit');
    const forwarded = stack.relay.requests.at(-1)?.headers['x-request-id'];
    expect(miss.header('x-request-id')).toBe(forwarded);
    expect(hit.header('x-request-id')).not.toBe(forwarded);
    for (const response of [miss, hit])
      expect(response.header('x-request-id')).toMatch(/^[\da-f]{32}$/);
  });

  test('keeps defaults spelled out apart, for one render', async () => {
    const path = '/icons/4/gh78.webp';
    expect(await shareOneEntry(path, `${path}?size=128&animated=false`)).toBe(false);
    expect(stack.relay.requests.map(({ isRendered }) => isRendered)).toEqual([true, false]);
  });

  test('is what Darkroom is sent', async () => {
    await stack.ask(`${avatar}?animated=true&b=2&quality=low&a=1&size=300#part`);
    await stack.ask(`${photo}?format=webp&height=8&quality=high&width=9&size=1`);
    await stack.ask('/attachments/1/10/draft%20%231%20%2520%20c%61ts%20&%20dogs.png?width=20');
    expect(stack.relay.requests.map(({ target }) => target)).toEqual([
      `${avatar}?size=300&quality=low&animated=true`,
      `${photo}?width=9&height=8&format=webp&quality=high`,
      '/attachments/1/10/draft%20%231%20%2520%20cats%20&%20dogs.png?width=20',
    ]);
  });
});

describe('a cold stampede', () => {
  const hundred = Array.from({ length: 100 });

  test('is one request to Darkroom and one render', async () => {
    const target = '/splashes/1/ab12.webp?size=1280&quality=lossless';
    // Each on a connection of its own, so that all processes of nginx take part.
    const clients = hundred.map(() => stack.connect());
    const responses = await Promise.all(clients.map((ask) => ask(target)));

    expect(stack.relay.requests).toMatchObject([{ status: 200, isRendered: true }]);
    const direct = essence(await stack.askDirectly(target));
    for (const response of responses) expect(essence(response)).toEqual(direct);
    const outcomes = responses.map(({ nginx }) => nginx);
    expect(outcomes.filter((status) => status === 'fwd=uri-miss')).toHaveLength(1);
    expect(outcomes.filter((status) => status === 'hit')).toHaveLength(99);
  });

  test('on what is not there is one request for the status and one for the body', async () => {
    const responses = await Promise.all(hundred.map(() => stack.ask('/avatars/1/missing.webp')));
    for (const response of responses) {
      expect(response.status).toBe(404);
      expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'UNKNOWN_MEDIA' });
    }
    expect(stack.relay.requests).toHaveLength(2);
  });
});

describe('the purge', () => {
  test('removes what is under a path: every size, slice and refusal, and nothing else', async () => {
    const [icon, other] = ['/icons/2/cd34.webp', '/icons/3/ef56.webp'];
    const [song, refused] = ['/attachments/1/9/%F0%9F%8E%89%20party.png', `${icon}?size=63`];
    const purged = [icon, `${icon}?size=64`, song, `${song}?height=30`];
    for (const target of [...purged, refused, other]) await stack.ask(target);

    expect(stack.nginx.purge('/icons/2/cd34.')).toBe('3 removed\n');
    expect(stack.nginx.purge('/attachments/1/9/🎉 party.png')).toMatch(/^[2-9] removed\n$/);
    stack.relay.requests.length = 0;
    for (const target of purged) {
      expect(await stack.ask(target), target).toMatchObject({ status: 200, nginx: 'fwd=uri-miss' });
    }
    expect(await stack.ask(refused)).toMatchObject({ status: 400, nginx: 'fwd=uri-miss' });
    expect(await stack.ask(other)).toMatchObject({ status: 200, nginx: 'hit' });
    expect(stack.relay.requests).toHaveLength(5);
  });
});

function rawUtf8Path(query: string): string {
  // Node writes a target byte for byte as Latin-1.
  return `${Buffer.from('/attachments/1/9/🎉%20party.png', 'utf8').toString('latin1')}${query}`;
}
