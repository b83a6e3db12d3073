import { expect, test } from 'vitest';
import { samples, useTestApp } from '../../support/test-app.ts';

// Contract §14: the platform stores originals past Darkroom, which no 404 may hide for long.

const platform = { COMPATIBILITY: 'fluxer' };
const URL = '/avatars/1/ab12.png';

test.each([
  [platform, 'no-store', 2_000],
  [{ ...platform, NOT_FOUND_MAX_AGE_SECONDS: '1' }, 'no-store', 1_000],
  [{}, 'public, max-age=30', 30_000],
])('with %j, missing media are %s and remembered for %i ms', async (settings, caching, forMs) => {
  const { get, originals, clock } = await useTestApp({ settings });
  const status = async (): Promise<number> => (await get(URL)).statusCode;
  const missing = await get(URL);
  expect([missing.statusCode, missing.headers['cache-control']]).toEqual([404, caching]);
  originals.put('avatars/1/ab12', samples.png);
  clock.advance(forMs - 1);
  expect(await status()).toBe(404);
  clock.advance(1);
  expect(await status()).toBe(200);
});

test('a path that is no resource stays what it is', async () => {
  const { get } = await useTestApp({ settings: platform });
  const { statusCode, headers } = await get('/nowhere');
  expect([statusCode, headers['cache-control']]).toEqual([404, 'public, max-age=30']);
});

test('an attachment whose URL is refused looks like a missing attachment', async () => {
  const signing = {
    ATTACHMENT_SIGNING: 'enforce',
    ATTACHMENT_SIGNING_KEYS: 'an-example-key-of-thirty-two-bytes-or-more',
  };
  const { get } = await useTestApp({ settings: { ...platform, ...signing } });
  expect((await get('/attachments/1/2/a.png')).headers['cache-control']).toBe('no-store');
});
