import { once } from 'node:events';
import { truncateSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { enforced, signatureOf, signedPath } from '../support/signed-urls.ts';
import { useStack } from './stack.ts';

const MEBIBYTE = 1024 * 1024;

const stack = await useStack(enforced);

/** Seconds since 1970, some from now. */
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;
const later = inSeconds(3_600);

const photo = 'attachments/1/1/country-lane.jpg';
const document = 'attachments/1/13/minutes.pdf';

/** Until a time has come. */
async function waitFor(timeSeconds: number): Promise<void> {
  await expect
    .poll(() => Date.now(), { timeout: 60_000, interval: 50 })
    .toBeGreaterThanOrEqual(timeSeconds * 1000);
}

describe('a signed attachment', () => {
  test.each([
    ['a rendering', 'width=64&format=webp', photo],
    ['an original', '', document],
    ['an original, in so many words', 'quality=lossless&animated=false', document],
  ])('is kept by its URL, and by nothing else: %s', async (_, query, key) => {
    const [one, other] = [later, later + 1].map((end) => signedPath(key, end, query));
    if (one === undefined || other === undefined) return expect.fail();
    const direct = await stack.askDirectly(one);
    for (const target of [one, other]) {
      for (const nginx of ['fwd=uri-miss', 'hit']) {
        const response = await stack.ask(target);
        expect(response).toMatchObject({ status: 200, nginx });
        expect(response.body.equals(direct.body)).toBe(true);
        expect(response.header('cache-control')).toMatch(/^public, max-age=\d+$/);
      }
    }
    expect(stack.relay.requests).toHaveLength(2);
    expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual([
      undefined,
      undefined,
    ]);
    // Nothing that is not signed has it from there, and no other attachment.
    const refused = await stack.askDirectly(`/${key}?${query}`);
    for (const target of [
      `/${key}?${query}`,
      `${one.slice(0, -1)}${one.endsWith('0') ? '1' : '0'}`,
      one.replace('&hm=', '&HM='),
      one.replace('&hm=', '&h%6d='),
      `${one}&hm=0`,
      `${one}&ex=0`,
    ]) {
      expect(await stack.ask(target), target).toMatchObject({ status: 404, body: refused.body });
    }
    expect((await stack.ask(one)).nginx).toBe('hit');
  });

  test('has one entry for all orders of its parameters, with others between them', async () => {
    const [ex, is, hm] = signatureOf(photo, later).split('&');
    const first = await stack.ask(`/${photo}?width=65&${ex}&${is}&${hm}`);
    expect(first.status).toBe(200);
    for (const query of [`${hm}&${is}&width=65&${ex}`, `v=1&${is}&${ex}&x=2&${hm}&width=65`]) {
      expect(await stack.ask(`/${photo}?${query}`)).toMatchObject({ status: 200, nginx: 'hit' });
    }
  });

  test('is cut into slices for ranges and heads', async () => {
    const bytes = Buffer.alloc(3 * MEBIBYTE, 'slices');
    const key = 'attachments/2/70/song.bin';
    await stack.put(key, bytes);
    const target = signedPath(key, later);
    const part = await stack.ask(target, {
      headers: { Range: `bytes=${2 * MEBIBYTE + 1}-${2 * MEBIBYTE + 9}` },
    });
    expect(part).toMatchObject({
      status: 206,
      body: bytes.subarray(2 * MEBIBYTE + 1, 2 * MEBIBYTE + 10),
    });
    const head = await stack.ask(target, { method: 'HEAD' });
    expect(head.header('content-length')).toBe(String(bytes.length));
    const ranges = stack.relay.requests.map(({ headers }) => headers.range);
    expect(ranges).toEqual([
      `bytes=${2 * MEBIBYTE}-${3 * MEBIBYTE - 1}`,
      `bytes=0-${MEBIBYTE - 1}`,
    ]);
    const again = await stack.ask(target, { headers: { Range: 'bytes=5-9' } });
    expect(again).toMatchObject({ status: 206, nginx: 'hit', body: bytes.subarray(5, 10) });
    const refused = await stack.ask(`/${key}`, { headers: { Range: 'bytes=5-9' } });
    expect(refused.status).toBe(404);
    const beyond = await stack.ask(target, { headers: { Range: 'bytes=99999999-' } });
    expect(beyond.status).toBe(416);
  });

  test('of 100 MB is passed on, and not kept', async () => {
    const key = 'attachments/2/71/film.bin';
    await stack.put(key, Buffer.alloc(1));
    truncateSync(join(stack.originals, key), 100_000_000);
    for (let round = 1; round <= 2; round += 1) {
      const { status, body } = await stack.ask(signedPath(key, later));
      expect([status, body.length]).toEqual([200, 100_000_000]);
      expect(stack.relay.requests).toHaveLength(round);
    }
  });

  test('is as old as it is when a browser has it from here', async () => {
    const target = signedPath(photo, later, 'width=66');
    const { headers } = await stack.ask(target);
    await sleep(1_100);
    const hit = await stack.ask(target);
    expect(hit.nginx).toBe('hit');
    for (const name of ['date', 'cache-control']) expect(hit.headers[name]).toEqual(headers[name]);
  });
});

describe('a URL that ends', () => {
  const shown = [
    ['width=67', photo, {}],
    ['', photo, {}],
    ['', document, { Range: 'bytes=0-99' }],
  ] as const;

  test('is shown nothing from then on, as if it had never held', { timeout: 60_000 }, async () => {
    const end = inSeconds(8);
    const watched = shown.map(async ([query, key, headers]) => {
      const target = signedPath(key, end, query);
      expect((await stack.ask(target, { headers })).status).toBeLessThan(300);
      expect((await stack.ask(target, { headers })).nginx).toBe('hit');
      const refused = await stack.askDirectly(`/${key}?${query}`);
      for (;;) {
        const askedAtMs = Date.now();
        const response = await stack.ask(target, { headers });
        if (response.status === 404) {
          expect(Date.now()).toBeGreaterThanOrEqual(end * 1000);
          expect(response.body).toEqual(refused.body);
          break;
        }
        expect(response.status).toBeLessThan(300);
        expect(askedAtMs).toBeLessThan(end * 1000);
        await sleep(40);
      }
      expect((await stack.ask(target, { headers })).status).toBe(404);
    });
    await Promise.all(watched);
  });

  test('in the middle of a transfer lets it go on to its end', { timeout: 60_000 }, async () => {
    const key = 'attachments/2/72/film.bin';
    const bytes = Buffer.alloc(24 * MEBIBYTE, 'film');
    await stack.put(key, bytes);
    const end = inSeconds(6);
    const sent = request({
      host: '127.0.0.1',
      port: stack.nginx.port,
      ca: stack.nginx.certificate,
      path: signedPath(key, end),
      agent: false,
    });
    sent.end();
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    await waitFor(end + 1);
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
    expect((await stack.ask(signedPath(key, end))).status).toBe(404);
  });

  describe('while Darkroom is down', () => {
    afterEach(() => stack.startDarkroom());

    test('is not served from what was kept; one that holds is', { timeout: 60_000 }, async () => {
      const end = inSeconds(10);
      const [ending, holding] = [end, later].map((each) => signedPath(photo, each, 'width=68'));
      if (ending === undefined || holding === undefined) return expect.fail();
      const sliced = signedPath(document, end);
      const headers = { Range: 'bytes=0-9' };
      for (const target of [ending, holding]) expect((await stack.ask(target)).status).toBe(200);
      expect((await stack.ask(sliced, { headers })).status).toBe(206);
      await stack.stopDarkroom();
      expect(await stack.ask(holding)).toMatchObject({ status: 200, nginx: 'hit' });
      await waitFor(end);
      expect((await stack.ask(ending)).status).toBe(502);
      expect((await stack.ask(sliced, { headers })).status).toBe(502);
      expect((await stack.ask(holding)).status).toBe(200);
      // Each line of an error log would have had the whole request.
      expect(stack.nginx.log()).not.toMatch(/[?&]hm=/);
    });
  });
});
