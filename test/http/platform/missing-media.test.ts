import { expect, test } from 'vitest';
import { enforced } from '../../support/signed-urls.ts';
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

test.each([
  // What is refused looks like what is missing.
  ['/attachments/1/2/a.png', 'no-store'],
  ['/nowhere', 'public, max-age=30'],
])('%s, which needs a signature or is no resource, is a 404 that is %s', async (url, caching) => {
  const { get } = await useTestApp({ settings: { ...platform, ...enforced } });
  const { statusCode, headers } = await get(url);
  expect([statusCode, headers['cache-control']]).toEqual([404, caching]);
});
