import { expect, test } from 'vitest';
import { defer } from '../support/deferred.ts';
import { samples, useTestApp } from '../support/test-app.ts';

/** Starts a service whose results have `bodyBytes`, with a cache of `memoryBytes`. */
async function start(bodyBytes: number, memoryBytes: number) {
  const renderer = { render: async () => Buffer.alloc(bodyBytes) };
  const app = await useTestApp({ renderer, settings: { CACHE_MEMORY_BYTES: String(memoryBytes) } });
  app.originals.put('emojis/1', samples.png);
  /** Requests a size, and returns the Cache-Status. */
  return async (size: number): Promise<string> => {
    const { headers } = await app.get(`/emojis/1.webp?size=${size}`);
    return String(headers['cache-status']).replace('darkroom; ', '');
  };
}

const STORED = 'fwd=miss; stored';

test('evicts the least recently used results above the limit', async () => {
  const request = await start(100_000, 350_000);
  for (const size of [16, 20, 22]) expect(await request(size)).toBe(STORED);
  expect(await request(16)).toBe('hit');
  expect(await request(24)).toBe(STORED);
  const outcomes = [16, 22, 24].map(request);
  expect(await Promise.all(outcomes)).toEqual(['hit', 'hit', 'hit']);
  expect(await request(20)).toBe(STORED);
});

test('neither caches a result that is too large nor evicts others for it', async () => {
  const request = await start(100_000, 99_999);
  for (let time = 0; time < 2; time += 1) expect(await request(16)).toBe('fwd=miss');
});

test('does not join a read that began long ago, because its result may be outdated', async () => {
  const app = await useTestApp({ renderer: { render: async (bytes: Uint8Array) => bytes } });
  app.originals.put('emojis/1', samples.png);
  const paused = defer<void>();
  app.originals.alter = async (object) => {
    await paused.promise;
    return object;
  };
  const request = (size: number) => app.get(`/emojis/1.webp?size=${size}`);
  const responses = [request(16), request(20)];
  await expect.poll(() => app.originals.reads.get('emojis/1')).toBe(1);
  app.clock.advance(5_000);
  app.originals.put('emojis/1', samples.webp);
  responses.push(request(22));
  await expect.poll(() => app.originals.reads.get('emojis/1')).toBe(2);
  paused.resolve();
  const bodies = (await Promise.all(responses)).map(({ rawPayload }) => rawPayload.length);
  const { length } = samples.png;
  expect(bodies).toEqual([length, length, samples.webp.length]);
});
