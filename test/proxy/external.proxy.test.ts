import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { createSeededRandom } from '../support/seeded-random.ts';
import { readSample } from '../support/test-app.ts';
import { keys, opaque, segmented, useSiteStack } from './site-stack.ts';

const VIDEO_BYTES = 50_000_000;

const { site, stack } = await useSiteStack({
  EXTERNAL_MIN_AGE_SECONDS: '4',
  EXTERNAL_MAX_AGE_SECONDS: '5',
});

const photo = readSample('avatars/1/ab12');
// It begins like an MP4, which is all that is looked at.
const video = Buffer.concat([
  Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1'),
  createSeededRandom('video').bytes(1_000_000),
  Buffer.alloc(VIDEO_BYTES - 1_000_024, 'moov'),
]);
await site.put('video.mp4', video);

let count = 0;
/** A picture of the site that was not asked for yet, at its URL without TLS. */
let fresh: string;
beforeEach(async () => {
  count += 1;
  await site.put(`cat ${count}.jpg`, photo);
  fresh = `${site.plain}/cat%20${count}.jpg`;
});

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const targets = (): readonly string[] => stack.relay.requests.map(({ target }) => target);
const asked = (path: string): readonly string[] =>
  site.requests().filter((line) => line.includes(` ${path} `));

describe('what another site has', () => {
  test('is rendered, after a redirect to TLS, once for all', async () => {
    const path = `${opaque(fresh)}?width=64&format=webp`;
    const first = await stack.ask(path);
    expect(first).toMatchObject({ status: 200, nginx: 'fwd=uri-miss' });
    expect(first.header('content-type')).toBe('image/webp');
    expect(first.header('cache-control')).toMatch(/^public, max-age=\d+$/);
    const again = await stack.ask(path);
    expect(again.nginx).toBe('hit');
    expect(again.body).toEqual(first.body);
    expect(stack.relay.requests).toMatchObject([{ target: path, status: 200, isRendered: true }]);
    const name = new URL(fresh).pathname;
    expect(asked(name)).toEqual([`GET ${name} 301`, `GET ${name} 200`]);
  });

  test('is passed on to the byte', async () => {
    const response = await stack.ask(opaque(fresh));
    expect(response.status).toBe(200);
    expect(response.body).toEqual(photo);
    expect(response.header('content-type')).toBe('image/jpeg');
    expect((await stack.ask(opaque(fresh))).nginx).toBe('hit');
  });

  test('is purged by its path as it was signed', async () => {
    const path = segmented(`${fresh}?a=b`);
    const widths = ['?width=20', '?width=21', ''];
    for (const width of widths) expect((await stack.ask(path + width)).status).toBe(200);
    expect(stack.nginx.purge(path)).toBe('3 removed\n');
    for (const width of widths) expect((await stack.ask(path + width)).nginx).toBe('fwd=uri-miss');
  });

  test('is a video, in parts and whole, which Darkroom does not hold', async () => {
    const path = opaque(`${site.secure}/video.mp4`);
    for (const [first, last] of [
      [0, 1_023],
      [25_000_000, 25_999_999],
      [VIDEO_BYTES - 500, VIDEO_BYTES - 1],
    ] as const) {
      const part = await stack.ask(path, { headers: { Range: `bytes=${first}-${last}` } });
      expect(part.status).toBe(206);
      expect(part.header('content-type')).toBe('video/mp4');
      expect(part.header('content-range')).toBe(`bytes ${first}-${last}/${VIDEO_BYTES}`);
      expect(sha256(part.body)).toBe(sha256(video.subarray(first, last + 1)));
    }
    const suffix = await stack.ask(path, { headers: { Range: 'bytes=-7' } });
    expect(suffix.body).toEqual(video.subarray(-7));
    const beyond = await stack.ask(path, { headers: { Range: `bytes=${VIDEO_BYTES}-` } });
    expect(beyond.status).toBe(416);
    const head = await stack.ask(path, { method: 'HEAD' });
    expect(head.header('content-length')).toBe(String(VIDEO_BYTES));
    // No more came from Darkroom than was asked for.
    const bytes = stack.relay.requests.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0);
    expect(bytes).toBeLessThan(1_100_000);

    const whole = await stack.ask(path);
    expect(sha256(whole.body)).toBe(sha256(video));
  });
});

describe('a path', () => {
  test.each([
    'https/a.example//x//y/',
    'https/a.example/../x/./y/..',
    'https/a.example/%2e%2e/%2F/%2f/%41%7E',
    'https/a.example/%3Fx/%23/%25/%252e',
    "https/a.example/:@!$&'()*+,;=|^~",
    '%3Fa%3Db%26c%253D/https/a.example/x+y',
    'v2/!',
    '../../avatars/1/ab12.webp',
    'https/a.example/../../../../avatars/1/ab12.webp',
    'https/a.example/../../../explorer/',
  ])('comes as it was signed: %s', async (target) => {
    const path = `/external/${keys.sign(target, 'base64url')}/${target}`;
    for (const query of ['', '?width=32']) {
      // Signed, and never fetched.
      const response = await stack.ask(path + query);
      expect(response.status, response.body.toString()).toBe(502);
    }
    expect(targets()).toEqual([path, `${path}?width=32`]);
    const unsigned = path.replace(/^(\/external\/)./, '$1!');
    expect((await stack.ask(unsigned)).status).toBe(401);
    expect(targets().at(-1)).toBe(unsigned);
  });

  test('has the parameters that it has, in one order, and no other', async () => {
    const path = opaque(fresh);
    const first = await stack.ask(`${path}?v=1&format=webp&size=8&width=24&animated=false`);
    const again = await stack.ask(`${path}?width=24&animated=false&format=webp`);
    expect(again.nginx).toBe('hit');
    expect(again.body).toEqual(first.body);
    const other = await stack.ask(`${path}?width=25&animated=false&format=webp`);
    expect(other.nginx).toBe('fwd=uri-miss');
    expect(targets()).toEqual([
      `${path}?width=24&format=webp&animated=false`,
      `${path}?width=25&format=webp&animated=false`,
    ]);
  });

  test.each(['?width=24&width=24', '?w%69dth=24&width=x', '?width='])(
    'with parameters that are wrong comes as it is: %s',
    async (query) => {
      const response = await stack.ask(opaque(fresh) + query);
      expect(response.status).toBe(400);
      expect(targets()).toEqual([opaque(fresh) + query]);
    },
  );

  test('is not to be taken for another one', async () => {
    const path = `${opaque(fresh)}?width=40`;
    const others = [
      path.replace('/external/', '/%65xternal/'),
      `/avatars/..${path}`,
      '/.external',
      '/.external-part',
      '/.external/x',
    ];
    for (const other of others) expect((await stack.ask(other)).status, other).toBe(404);
    expect((await stack.ask(path)).status).toBe(200);
    for (const other of others) {
      const { status, body } = await stack.ask(other);
      expect([status, JSON.parse(body.toString()).code], other).toEqual([404, 'NOT_FOUND']);
    }
  });

  test('may have a URL of 8 KiB in it', async () => {
    const url = `${site.secure}${new URL(fresh).pathname}?`.padEnd(8_192, 'w');
    expect(url).toHaveLength(8_192);
    expect((await stack.ask(`${opaque(url)}?width=16`)).status).toBe(200);
    expect((await stack.ask(`${segmented(url)}?width=16`)).status).toBe(200);
    expect((await stack.ask(`${opaque(`${url}x`)}?width=16`)).status).toBe(502);
  });
});

describe('a request', () => {
  test('tells that it has been through other proxies, and nothing else of a client', async () => {
    const headers = {
      'CDN-Loop': 'other; v=1, another',
      Cookie: 'session=1',
      Authorization: 'Bearer x',
      Referer: 'https://chat.example/',
      'User-Agent': 'client',
    };
    for (const path of [`${opaque(fresh)}?width=56`, opaque(fresh)]) {
      expect((await stack.ask(path, { headers })).status).toBe(200);
      const part = { ...headers, Range: 'bytes=0-9' };
      expect((await stack.ask(path, { headers: part })).status).toBe(206);
    }
    for (const { headers: sent } of stack.relay.requests) {
      expect(sent['cdn-loop']).toBe('other; v=1, another');
      for (const name of ['cookie', 'authorization', 'referer', 'user-agent']) {
        expect(sent[name]).toBeUndefined();
      }
    }
    expect(stack.relay.requests).toHaveLength(3);
  });
});

test('what has expired is asked for before it is served, and stale only while Darkroom is down', async () => {
  const path = `${opaque(`${site.secure}/cat%20${count}.jpg`)}?width=72`;
  const first = await stack.ask(path);
  const isChecked = async () => (await stack.ask(path)).nginx;
  await expect.poll(isChecked, { timeout: 10_000 }).not.toBe('hit');
  expect(stack.relay.requests[1]?.headers['if-none-match']).toBe(first.header('etag'));
  expect([200, 304]).toContain(stack.relay.requests[1]?.status);
  stack.relay.respondWith(503);
  await expect.poll(async () => (await stack.ask(path)).status, { timeout: 10_000 }).toBe(503);
  stack.relay.respondWith(undefined);
  await stack.stopDarkroom();
  const stale = await stack.ask(path);
  expect(stale).toMatchObject({ status: 200, nginx: 'hit; detail=stale', body: first.body });
  await stack.startDarkroom();
  expect((await stack.ask(path)).nginx).toBe('fwd=stale; fwd-status=304');
});
