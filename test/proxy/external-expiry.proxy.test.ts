import { describe, expect, test } from 'vitest';
import { readSample } from '../support/test-app.ts';
import { opaque, useSiteStack } from './site-stack.ts';

const { site, stack } = await useSiteStack({
  EXTERNAL_MIN_AGE_SECONDS: '2',
  EXTERNAL_MAX_AGE_SECONDS: '3',
});

describe('external media that have expired', () => {
  test('are asked for before they are served, and are stale only while Darkroom is down', async () => {
    await site.put('cat.jpg', readSample('avatars/1/ab12'));
    const path = `${opaque(`${site.secure}/cat.jpg`)}?width=72`;
    const first = await stack.ask(path);
    await expect
      .poll(async () => (await stack.ask(path)).nginx, { timeout: 10_000 })
      .not.toBe('hit');
    const [, checked] = stack.relay.requests;
    expect(checked?.headers['if-none-match']).toBe(first.header('etag'));
    expect([200, 304]).toContain(checked?.status);

    stack.relay.respondWith(503);
    await expect.poll(async () => (await stack.ask(path)).status, { timeout: 10_000 }).toBe(503);
    stack.relay.respondWith(undefined);

    await stack.stopDarkroom();
    const stale = await stack.ask(path);
    expect(stale).toMatchObject({ status: 200, nginx: 'hit; detail=stale' });
    expect(stale.body).toEqual(first.body);
    await stack.startDarkroom();
    expect((await stack.ask(path)).nginx).toBe('fwd=stale; fwd-status=304');
  });
});
