import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { enforced, signatureOf, signedPath } from '../support/signed-urls.ts';
import { useStack } from './stack.ts';

const MEBIBYTE = 1024 * 1024;
const stack = await useStack(enforced);
const photo = 'attachments/1/1/country-lane.jpg';
const document = 'attachments/1/13/minutes.pdf';

/** Returns a future time in Unix seconds. */
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;
const later = inSeconds(3_600);

describe('a signed attachment behind nginx', () => {
  test.each([
    ['a rendering', 'width=64&format=webp', photo],
    ['an original', 'quality=lossless&animated=false', document],
  ])('is cached only by its parameters, in any order: %s', async (_, query, key) => {
    const one = signedPath(key, later, query);
    const [ex = '', is = '', hm = ''] = signatureOf(key, later).split('&');
    const direct = await stack.requestDirectly(one);
    for (const target of [one, signedPath(key, later + 1, query)]) {
      for (const nginx of ['fwd=uri-miss', 'hit']) {
        const response = await stack.request(target);
        expect(response).toMatchObject({ status: 200, nginx });
        expect(response.body.equals(direct.body)).toBe(true);
      }
    }
    for (const other of [`${hm}&${is}&${query}&${ex}`, `v=1&${is}&${ex}&x=2&${hm}&${query}`]) {
      expect(await stack.request(`/${key}?${other}`)).toMatchObject({ status: 200, nginx: 'hit' });
    }
    expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual(Array(2));
    // Neither unsigned URLs nor other attachments get it from the cache.
    const refused = await stack.requestDirectly(`/${key}?${query}`);
    for (const target of [
      `/${key}?${query}`,
      `${one.slice(0, -1)}${one.endsWith('0') ? '1' : '0'}`,
      one.replace('&hm=', '&HM='),
      one.replace('&hm=', '&h%6d='),
      `${one}&hm=0`,
      `${one}&ex=0`,
    ]) {
      expect(await stack.request(target), target).toMatchObject({
        status: 404,
        body: refused.body,
      });
    }
    expect((await stack.request(one)).nginx).toBe('hit');
  });

  test('is fetched in slices for ranges and HEAD', async () => {
    const bytes = Buffer.alloc(3 * MEBIBYTE, 'slices');
    const key = 'attachments/2/70/song.bin';
    await stack.put(key, bytes);
    const target = signedPath(key, later);
    const at = 2 * MEBIBYTE + 1;
    const part = await stack.request(target, { headers: { Range: `bytes=${at}-${at + 8}` } });
    expect(part).toMatchObject({ status: 206, body: bytes.subarray(at, at + 9) });
    await stack.request(target, { method: 'HEAD' });
    expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual(
      [2, 0].map((slice) => `bytes=${slice * MEBIBYTE}-${(slice + 1) * MEBIBYTE - 1}`),
    );
    const again = await stack.request(target, { headers: { Range: 'bytes=5-9' } });
    expect(again).toMatchObject({ status: 206, nginx: 'hit', body: bytes.subarray(5, 10) });
    const refused = await stack.request(`/${key}`, { headers: { Range: 'bytes=5-9' } });
    expect(refused.status).toBe(404);
  });

  test('of 100 MB is passed on, and not cached', async () => {
    const key = 'attachments/2/71/film.bin';
    await stack.put(key, Buffer.alloc(1));
    truncateSync(join(stack.originals, key), 100_000_000);
    for (let round = 1; round <= 2; round += 1) {
      const { status, body } = await stack.request(signedPath(key, later));
      expect([status, body.length]).toEqual([200, 100_000_000]);
      expect(stack.relay.requests).toHaveLength(round);
    }
  });

  test('keeps Date and Cache-Control on a hit, so that a browser knows its age', async () => {
    const target = signedPath(photo, later, 'width=66');
    const { headers } = await stack.request(target);
    await sleep(1_100);
    const hit = await stack.request(target);
    expect(hit.nginx).toBe('hit');
    for (const name of ['date', 'cache-control']) expect(hit.headers[name]).toEqual(headers[name]);
  });
});

describe('a signed URL behind nginx', () => {
  test('gets the response of a missing attachment as soon as it expires', {
    timeout: 60_000,
  }, async () => {
    const end = inSeconds(6);
    const shown = [
      ['width=67', photo, {}],
      ['', photo, {}],
      ['', document, { Range: 'bytes=0-99' }],
    ] as const;
    const watched = shown.map(async ([query, key, headers]) => {
      const request = () => stack.request(signedPath(key, end, query), { headers });
      expect((await request()).status).toBeLessThan(300);
      expect((await request()).nginx).toBe('hit');
      const refused = await stack.requestDirectly(`/${key}?${query}`);
      for (;;) {
        const requestedAtMs = Date.now();
        const response = await request();
        if (response.status === 404) {
          expect(Date.now()).toBeGreaterThanOrEqual(end * 1000);
          expect(response.body).toEqual(refused.body);
          break;
        }
        expect(response.status).toBeLessThan(300);
        expect(requestedAtMs).toBeLessThan(end * 1000);
        await sleep(40);
      }
      expect((await request()).status).toBe(404);
    });
    await Promise.all(watched);
  });

  test('is not served from the cache after it has expired, even while Darkroom is down; a valid one is', async () => {
    const end = inSeconds(6);
    const [ending, holding] = [end, later].map((each) => signedPath(photo, each, 'width=68'));
    const sliced = signedPath(document, end);
    const statusOf = async (target = '', headers = {}) =>
      (await stack.request(target, { headers })).status;
    const Range = 'bytes=0-9';
    for (const target of [ending, holding]) expect(await statusOf(target)).toBe(200);
    expect(await statusOf(sliced, { Range })).toBe(206);
    await stack.stopDarkroom();
    await sleep(end * 1000 + 50 - Date.now());
    expect(await statusOf(ending)).toBe(502);
    expect(await statusOf(sliced, { Range })).toBe(502);
    expect(await statusOf(holding)).toBe(200);
    // A line of an error log would contain the complete request.
    expect(stack.nginx.log()).not.toMatch(/[?&]hm=/);
  }, 60_000);
});
