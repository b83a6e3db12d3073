import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { readSample, samples } from '../support/test-app.ts';
import { useSiteStack } from './stack.ts';

/** nginx counts whole seconds, from the start of the current one. */
const NGINX_SECOND_MS = 1_000;
/** Maximum delay of a poll on a busy machine. */
const POLL_SLACK_MS = 5_000;
const POLL_MS = 40;

const stack = await useSiteStack({
  MEDIA_MAX_AGE_SECONDS: '1',
  DEFAULT_AVATAR_MAX_AGE_SECONDS: '1',
  NOT_FOUND_MAX_AGE_SECONDS: '2',
  REFUSED_MAX_AGE_SECONDS: '3',
  CACHE_REVALIDATE_SECONDS: '0', // Darkroom revalidates every request
  EXTERNAL_MIN_AGE_SECONDS: '1',
  EXTERNAL_MAX_AGE_SECONDS: '1',
});
stack.site.serveRanges('/cat.jpg', samples.jpeg);

/** Repeats a request until its response fulfils a condition; returns all responses. */
async function requestUntil(target: string, isWanted: (response: ClientResponse) => boolean) {
  const responses: ClientResponse[] = [];
  const deadline = Date.now() + 15_000;
  for (;;) {
    const last = await stack.request(target);
    responses.push(last);
    if (isWanted(last)) return { responses, last };
    if (Date.now() > deadline) throw new Error(`${target} never returned the expected response`);
    await sleep(POLL_MS);
  }
}

const isFresh = ({ nginx }: ClientResponse): boolean => nginx === 'hit';
const isStale = ({ nginx }: ClientResponse): boolean => nginx.startsWith('hit; detail=stale');

/** Cached responses, their lifetime in seconds, and whether nginx serves them stale while it revalidates them. */
const kept = [
  [200, '/avatars/1/ab12.webp?size=64', 1, 'hit; detail=stale'],
  [200, '/avatars/2.png', 1, 'hit; detail=stale'],
  [200, '/attachments/1/1/country-lane.jpg?width=64', 1, 'fwd=stale; fwd-status=304'],
  [200, '/attachments/1/13/minutes.pdf', 1, 'fwd=stale; fwd-status=304'],
  [200, stack.externalPath('/cat.jpg', 'width=64'), 1, 'fwd=stale; fwd-status=304'],
  [404, '/avatars/1/missing.webp', 2, undefined],
  [404, '/nothing', 2, undefined],
  [404, '/attachments/1/1/nothing.jpg', 2, undefined],
  [400, '/avatars/1/ab12.png?size=63', 3, undefined],
  [415, '/attachments/1/14/romeo.txt?width=10', 3, undefined],
  [422, '/icons/9/torn.webp', 3, undefined],
] as const;

test('nginx caches each response exactly for the max-age of its Cache-Control', async () => {
  const photo = readSample('icons/1/ab12');
  await stack.put('icons/9/torn', photo.subarray(0, photo.length / 2));
  const lives = kept.map(async ([status, target, maxAgeSeconds, then]) => {
    const direct = await stack.requestDirectly(target);
    const started = Date.now();
    const first = await stack.request(target);
    const arrived = Date.now();
    expect(first).toMatchObject({ status, body: direct.body });
    expect(first.header('cache-control')).toMatch(new RegExp(`max-age=${maxAgeSeconds}(?:,|$)`));
    // An error needs two requests: one for the status, the other for the body.
    const count = status === 200 ? 1 : 2;
    expect(stack.relay.requestsOf(target)).toHaveLength(count);
    const { responses, last } = await requestUntil(
      target,
      (response) => !isFresh(response) || stack.relay.requestsOf(target).length > count,
    );
    const ended = Date.now();
    expect(responses.length, `${target} was not kept at all`).toBeGreaterThan(5);
    for (const { body, headers } of responses) {
      expect(body).toEqual(direct.body);
      expect(headers.etag).toEqual(direct.headers.etag);
    }
    expect(ended - started, target).toBeGreaterThan(maxAgeSeconds * 1_000 - NGINX_SECOND_MS);
    expect(ended - arrived, target).toBeLessThan(
      maxAgeSeconds * 1_000 + NGINX_SECOND_MS + POLL_SLACK_MS,
    );
    if (then === undefined) {
      // Without Age, Date must remain the time at which Darkroom created the response.
      const dates = responses.slice(0, -1).map(({ header }) => header('date'));
      expect(new Set(dates)).toEqual(new Set([first.header('date')]));
      // The error's body is in a separate cache, which must drop it too.
      const { responses: later } = await requestUntil(
        target,
        ({ header }) => header('date') !== first.header('date'),
      );
      expect([last, ...later].filter(isStale)).toEqual([]);
      return;
    }
    expect(last.nginx).toBe(then);
    await requestUntil(target, isFresh);
    const checks = stack.relay.requestsOf(target).slice(1);
    for (const check of checks) {
      expect(check).toMatchObject({ status: 304, isRendered: false });
      expect(check.headers['if-none-match']).toBe(first.header('etag'));
    }
    expect(checks).not.toHaveLength(0);
  });
  await Promise.all(lives);
});

describe('an expired response in nginx', () => {
  test.each([
    ['an image', '/avatars/6/kl12.webp?size=96', 'any'],
    ['a slice', '/attachments/1/17/jingle.mp3', 'one'],
  ])('is served stale to all while one request updates it: %s', async (_, target, waits) => {
    const first = await stack.request(target);
    const resume = stack.relay.pause();
    const waiting: Promise<ClientResponse>[] = [];
    try {
      // For a slice, the first client waits; for others, the next request on the same connection.
      while (stack.relay.requests.length < 2) {
        waiting.push(stack.connect()(target));
        await sleep(POLL_MS);
      }
      const responses = await Promise.all(Array.from({ length: 30 }, () => stack.request(target)));
      for (const response of responses) {
        expect(response.nginx).toBe('hit; detail=stale-while-updating');
        expect(response.body).toEqual(first.body);
      }
      expect(stack.relay.requests).toHaveLength(2);
    } finally {
      resume();
    }
    const outcomes = (await Promise.all(waiting)).map(({ nginx }) => nginx);
    const checked = outcomes.filter((status) => status === 'fwd=stale; fwd-status=304');
    expect(checked).toHaveLength(waits === 'one' ? 1 : 0);
    await requestUntil(target, isFresh);
    expect(stack.relay.requests[1]).toMatchObject({ status: 304 });
  });

  test('is replaced by a changed original, and by a 404 after its deletion', async () => {
    const original = (id: number): string => join(stack.originals, `emojis/${id}`);
    const target = '/emojis/3.webp';
    const before = await stack.request(target);
    copyFileSync(original(5), original(3));
    const { last } = await requestUntil(target, ({ body }) => !body.equals(before.body));
    expect(last.body).toEqual((await stack.requestDirectly(target)).body);
    expect(last.header('etag')).not.toBe(before.header('etag'));
    rmSync(original(3));
    const gone = await requestUntil(target, ({ status }) => status !== 200);
    expect(gone.last.status).toBe(404);
    expect(JSON.parse(gone.last.body.toString()).code).toBe('UNKNOWN_MEDIA');
  });
});

describe('nginx while Darkroom is down', () => {
  test('serves cached responses but no cached errors, and recovers after a restart', async () => {
    const kept = [
      ...['/avatars/4/gh78.webp?size=64', '/attachments/1/19/things.json'],
      stack.externalPath('/cat.jpg', 'width=72'),
    ];
    const missing = '/avatars/404/missing.png';
    const before = await Promise.all(kept.map((target) => stack.request(target)));
    expect((await stack.request(missing)).status).toBe(404);
    await stack.stopDarkroom();
    for (const target of kept) await requestUntil(target, isStale);
    // The error expires a second after the media: now everything in nginx is stale.
    await requestUntil(missing, ({ status }) => status !== 404);
    for (const [index, target] of kept.entries()) {
      const during = await stack.request(target);
      expect(isStale(during)).toBe(true);
      expect(during.body).toEqual(before[index]?.body);
    }
    for (const target of [missing, '/emojis/9.webp', '/attachments/1/16/clip.webm']) {
      const response = await stack.request(target);
      expect([response.status, JSON.parse(response.body.toString())], target).toEqual([
        502,
        { code: 'ORIGIN_ERROR', message: 'The origin has failed.' },
      ]);
      expect(response.header('cache-control')).toBe('no-store');
    }
    stack.relay.requests.length = 0;
    await stack.startDarkroom();
    expect((await stack.request('/emojis/9.webp')).status).toBe(200);
    expect((await stack.request(missing)).status).toBe(404);
    for (const target of kept) {
      await requestUntil(target, isFresh);
      // Revalidated by its ETag, although the new process has rendered nothing yet.
      const [revalidation] = stack.relay.requestsOf(target);
      expect(revalidation).toMatchObject({ status: 304, isRendered: false });
    }
  });

  test.each([500, 502, 503, 504])('passes on a %i and never caches it', async (status) => {
    // nginx revalidates an attachment before it serves it; it serves the others first.
    const kept = `/attachments/1/2/waterfall.jpg?width=${status}`;
    const path = `/guilds/1/users/${status}/avatars/ab12.webp`;
    const external = stack.externalPath('/cat.jpg', `width=${status}`);
    for (const target of [kept, external]) await stack.request(target);
    stack.relay.scriptedStatus = status;
    try {
      for (let round = 1; round <= 3; round += 1) {
        const { header, ...response } = await stack.request(path);
        expect([response.status, header('cache-control')]).toEqual([status, 'no-store']);
        // nginx cannot distinguish a 502 for Darkroom's storage from one for Darkroom itself.
        expect(header('retry-after')).toBe(status === 502 ? '' : '1');
        expect(stack.relay.requestsOf(path)).toHaveLength(round);
      }
      const { last } = await requestUntil(kept, isStale);
      expect(last).toMatchObject({ status: 200, nginx: 'hit; detail=stale' });
      expect(stack.relay.requests.at(-1)).toMatchObject({ status });
      // While Darkroom runs, it decides which external media are served stale.
      await requestUntil(external, (response) => response.status === status);
    } finally {
      stack.relay.scriptedStatus = undefined;
    }
    expect((await stack.request(path)).status).toBe(404);
  });
});
