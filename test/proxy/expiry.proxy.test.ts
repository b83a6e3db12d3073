import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Ask, ClientResponse } from '../support/http/http-client.ts';
import { readSample } from '../support/test-app.ts';
import { useStack } from './stack.ts';

/** nginx counts in whole seconds, from the start of the current one. */
const NGINX_SECOND_MS = 1_000;
/** What a poll may come late by, on a busy machine. */
const POLL_SLACK_MS = 2_000;

const stack = await useStack({
  MEDIA_MAX_AGE_SECONDS: '1',
  DEFAULT_AVATAR_MAX_AGE_SECONDS: '1',
  NOT_FOUND_MAX_AGE_SECONDS: '2',
  REFUSED_MAX_AGE_SECONDS: '3',
  // Darkroom asks its storage every time.
  CACHE_REVALIDATE_SECONDS: '0',
});

/** How often it is asked again. */
const POLL_MS = 40;

const original = (key: string): string => join(stack.originals, key);

/** Asks again and again until a response is as wanted, and gives the responses so far, it the last. */
async function askUntil(
  target: string,
  isWanted: (response: ClientResponse) => boolean,
  ask: Ask = stack.ask,
): Promise<readonly [ClientResponse, ...ClientResponse[]]> {
  const last = await ask(target);
  const responses: [ClientResponse, ...ClientResponse[]] = [last];
  const deadline = Date.now() + 10_000;
  while (!isWanted(responses.at(-1) ?? last)) {
    if (Date.now() > deadline) throw new Error(`${target} never came to be as wanted`);
    await sleep(POLL_MS);
    responses.push(await ask(target));
  }
  return responses;
}

const isFresh = ({ nginx }: ClientResponse): boolean => nginx === 'hit';
const isStale = ({ nginx }: ClientResponse): boolean => nginx.startsWith('hit; detail=stale');
const codeOf = ({ body }: ClientResponse): unknown => JSON.parse(body.toString()).code;

describe('what has expired', () => {
  test.each([
    ['an image', '/avatars/1/ab12.webp?size=64', 'hit; detail=stale'],
    ['a default avatar', '/avatars/2.png', 'hit; detail=stale'],
    [
      'a transformed attachment',
      '/attachments/1/1/country-lane.jpg?width=64',
      'fwd=stale; fwd-status=304',
    ],
    ['a slice of an attachment', '/attachments/1/13/minutes.pdf', 'fwd=stale; fwd-status=304'],
  ])('is revalidated by its ETag, with no render: %s', async (_, target, status) => {
    const first = await stack.ask(target);
    // `immutable` is a word to browsers; in nginx, the max-age beside it counts.
    const stale = (await askUntil(target, (response) => !isFresh(response))).at(-1);
    expect(stale?.nginx).toBe(status);
    const fresh = (await askUntil(target, isFresh)).at(-1);
    for (const response of [stale, fresh]) {
      expect(response?.body).toEqual(first.body);
      expect(response?.headers.etag).toEqual(first.headers.etag);
    }
    expect(stack.relay.requests[1]).toMatchObject({
      status: 304,
      isRendered: false,
      headers: { 'if-none-match': first.header('etag') },
    });
    expect(stack.relay.requests.filter(({ status }) => status === 200 || status === 206)).toEqual([
      stack.relay.requests[0],
    ]);
  });

  test('is served stale to all while one request updates it', async () => {
    const target = '/avatars/6/kl12.webp?size=96';
    const first = await stack.ask(target);
    const release = stack.relay.hold();
    try {
      // Over HTTP/1.1, the next request on its connection would wait for the update (see the file).
      await askUntil(target, isStale, stack.connect());
      const responses = await Promise.all(Array.from({ length: 50 }, () => stack.ask(target)));
      for (const response of responses) {
        expect(response.nginx).toBe('hit; detail=stale-while-updating');
        expect(response.body).toEqual(first.body);
      }
      expect(stack.relay.requests).toHaveLength(2);
    } finally {
      release();
    }
    await askUntil(target, isFresh);
    expect(stack.relay.requests[1]).toMatchObject({ status: 304 });
  });

  test('is, as a slice, served stale to all but the one whose request updates it', async () => {
    const target = '/attachments/1/17/jingle.mp3';
    const first = await stack.ask(target);
    const release = stack.relay.hold();
    // Of those who come from now on, one meets the expired slice first, and waits.
    const waiting: Promise<ClientResponse>[] = [];
    try {
      while (stack.relay.requests.length < 2) {
        waiting.push(stack.ask(target));
        await sleep(POLL_MS);
      }
      const responses = await Promise.all(Array.from({ length: 20 }, () => stack.ask(target)));
      for (const response of responses) {
        expect(response.nginx).toBe('hit; detail=stale-while-updating');
        expect(response.body).toEqual(first.body);
      }
      expect(stack.relay.requests).toHaveLength(2);
    } finally {
      release();
    }
    const outcomes = (await Promise.all(waiting)).map(({ nginx }) => nginx);
    expect(outcomes.filter((status) => status === 'fwd=stale; fwd-status=304')).toHaveLength(1);
  });

  test('gives way to a changed original', async () => {
    const target = '/emojis/3.webp';
    const before = await stack.ask(target);
    copyFileSync(original('emojis/5'), original('emojis/3'));
    const after = (await askUntil(target, ({ body }) => !body.equals(before.body))).at(-1);
    expect(after?.body).toEqual((await stack.askDirectly(target)).body);
    expect(after?.header('etag')).not.toBe(before.header('etag'));
  });

  test('gives way to a 404 when the original is gone', async () => {
    const target = '/emojis/6.webp';
    expect((await stack.ask(target)).status).toBe(200);
    rmSync(original('emojis/6'));
    const gone = (await askUntil(target, ({ status }) => status !== 200)).at(-1);
    expect(gone?.status).toBe(404);
    expect(gone && codeOf(gone)).toBe('UNKNOWN_MEDIA');
  });
});

describe('while Darkroom is down', () => {
  test('what was kept is served, errors are not; afterwards all is as before', async () => {
    const kept = '/avatars/4/gh78.webp?size=64';
    const sliced = '/attachments/1/19/things.json';
    const missing = '/avatars/404/missing.png';
    const before = await Promise.all([kept, sliced].map((target) => stack.ask(target)));
    expect((await stack.ask(missing)).status).toBe(404);

    await stack.stopDarkroom();
    await expect(stack.askDirectly(kept)).rejects.toThrow(/ECONNREFUSED/);
    await askUntil(kept, isStale);
    await askUntil(sliced, isStale);
    // It expires a second later than the media: from now on all that nginx has is stale.
    const down = (await askUntil(missing, ({ status }) => status !== 404)).at(-1);
    expect(down?.status).toBe(502);
    for (let round = 0; round < 5; round += 1) {
      const during = await Promise.all([kept, sliced].map((target) => stack.ask(target)));
      expect(during.map(({ status, body }) => ({ status, body }))).toEqual(
        before.map(({ status, body }) => ({ status, body })),
      );
      expect(during.every(isStale)).toBe(true);
    }
    for (const target of [missing, '/emojis/9.webp', '/attachments/1/16/clip.webm']) {
      const response = await stack.ask(target);
      expect(response.status, target).toBe(502);
      expect(JSON.parse(response.body.toString())).toEqual({
        code: 'ORIGIN_ERROR',
        message: 'The origin has failed.',
      });
      expect(response.headers).toMatchObject({
        'cache-control': ['no-store'],
        'content-type': ['application/json; charset=utf-8'],
        'access-control-allow-origin': ['*'],
        'x-content-type-options': ['nosniff'],
      });
    }

    stack.relay.requests.length = 0;
    await stack.startDarkroom();
    expect((await stack.ask('/emojis/9.webp')).status).toBe(200);
    expect((await stack.ask(missing)).status).toBe(404);
    for (const [index, target] of [kept, sliced].entries()) {
      const recovered = (await askUntil(target, isFresh)).at(-1);
      expect(recovered?.body).toEqual(before[index]?.body);
      // By its ETag, though the new process has rendered nothing yet.
      const [revalidation] = stack.relay.requestsOf(target.split('?')[0] ?? '');
      expect(revalidation).toMatchObject({ status: 304, isRendered: false });
    }
  });

  test('a 502 of its storage is never kept, and what was kept is served', async () => {
    const kept = '/icons/1/ab12.webp?size=64';
    const before = await stack.ask(kept);
    const folder = stack.originals;
    renameSync(folder, `${folder}-away`);
    try {
      await askUntil(kept, isStale);
      expect((await stack.ask(kept)).body).toEqual(before.body);
      for (let round = 1; round <= 3; round += 1) {
        const response = await stack.ask('/icons/3/ef56.webp');
        expect(response).toMatchObject({ status: 502 });
        expect(codeOf(response)).toBe('ORIGIN_ERROR');
        expect(stack.relay.requestsOf('/icons/3/ef56.webp')).toHaveLength(round);
      }
    } finally {
      renameSync(`${folder}-away`, folder);
    }
    expect((await stack.ask('/icons/3/ef56.webp')).status).toBe(200);
  });

  test.each([500, 503, 504])('a %i is passed on and never kept', async (status) => {
    // An attachment, which is checked before it is served; the others are served, then checked.
    const kept = `/attachments/1/2/waterfall.jpg?width=${status}`;
    const path = `/guilds/1/users/${status}/avatars/ab12.webp`;
    await stack.ask(kept);
    stack.relay.respondWith(status);
    try {
      for (let round = 1; round <= 3; round += 1) {
        const response = await stack.ask(path);
        expect(response).toMatchObject({ status, nginx: 'fwd=uri-miss' });
        expect(codeOf(response)).toBe('SCRIPTED');
        expect(response.header('cache-control')).toBe('no-store');
        expect(response.header('retry-after')).toBe('1');
        expect(stack.relay.requestsOf(path)).toHaveLength(round);
      }
      const [stale] = (await askUntil(kept, isStale)).slice(-1);
      expect(stale).toMatchObject({ status: 200, nginx: 'hit; detail=stale' });
      expect(stack.relay.requests.at(-1)).toMatchObject({ status });
    } finally {
      stack.relay.respondWith(undefined);
    }
    expect((await stack.ask(path)).status).toBe(404);
  });
});

describe('an error', () => {
  const refusals = [
    [404, 'UNKNOWN_MEDIA', '/avatars/1/nobody.webp', 2],
    [404, 'NOT_FOUND', '/robots.txt', 2],
    [404, 'UNKNOWN_MEDIA', '/attachments/1/1/nothing.jpg', 2],
    [400, 'INVALID_FORM_BODY', '/avatars/1/ab12.webp?size=63', 3],
    [415, 'UNSUPPORTED_MEDIA_TYPE', '/attachments/1/14/romeo.txt?width=10', 3],
    [422, 'UNPROCESSABLE_MEDIA', '/icons/9/torn.webp', 3],
  ] as const;

  test('is kept as long as its header says, and not longer', async () => {
    const photo = readSample('icons/1/ab12');
    await stack.put('icons/9/torn', photo.subarray(0, photo.length / 2));

    const lifetimes = refusals.map(async ([status, code, target, maxAgeSeconds]) => {
      const path = target.split('?')[0] ?? '';
      const direct = await stack.askDirectly(target);
      const started = Date.now();
      const first = await stack.ask(target);
      expect(first).toMatchObject({ status, body: direct.body });
      expect(codeOf(first)).toBe(code);
      expect(first.header('cache-control')).toBe(`public, max-age=${maxAgeSeconds}`);
      // The one for the status, the other for the body.
      expect(stack.relay.requestsOf(path)).toHaveLength(2);

      const responses = await askUntil(target, () => stack.relay.requestsOf(path).length > 2);
      const ageMs = Date.now() - started;
      expect(responses.length, `${target} was not kept at all`).toBeGreaterThan(10);
      expect(responses.slice(0, -1).every(isFresh)).toBe(true);
      for (const response of responses)
        expect(response).toMatchObject({ status, body: direct.body });
      expect(ageMs).toBeGreaterThan(maxAgeSeconds * 1_000 - NGINX_SECOND_MS);
      expect(ageMs).toBeLessThan(maxAgeSeconds * 1_000 + NGINX_SECOND_MS + POLL_SLACK_MS);
    });
    await Promise.all(lifetimes);
  });

  test('is not served stale to the first who comes after it has expired', async () => {
    const target = '/emojis/404.webp';
    const missing = await stack.ask(target);
    expect(missing.status).toBe(404);
    copyFileSync(original('emojis/1'), original('emojis/404'));
    // No client asks meanwhile; so nothing but its age can have removed it.
    const expiresMs = 2_000 + NGINX_SECOND_MS;
    const asked = Date.now();
    await expect.poll(() => Date.now() - asked, { timeout: 5_000 }).toBeGreaterThan(expiresMs);
    const found = await stack.ask(target);
    expect(found).toMatchObject({ status: 200, nginx: 'fwd=uri-miss' });
  });

  test('has the date at which it came to be', async () => {
    const first = await stack.ask('/avatars/2/nobody.webp');
    const responses = await askUntil('/avatars/2/nobody.webp', (response) => !isFresh(response));
    const dates = responses.slice(0, -1).map((response) => response.header('date'));
    expect(dates.length).toBeGreaterThan(10);
    expect(new Set(dates)).toEqual(new Set([first.header('date')]));
  });

  test.each([
    ['405', 'POST', {}],
    ['416', 'GET', { Range: 'bytes=99999999-' }],
  ])('without a lifetime is not kept: %s', async (status, method, headers) => {
    for (const round of [1, 2]) {
      stack.relay.requests.length = 0;
      const response = await stack.ask('/attachments/1/18/archive.zip', { method, headers });
      expect(response.status, `round ${round}`).toBe(Number(status));
      expect(response.header('cache-control')).toBe('no-store');
      expect(stack.relay.requests.at(-1)).toMatchObject({ method, status: Number(status) });
    }
  });
});
