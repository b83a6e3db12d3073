import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { defer, settle } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { metricsSettings, sendToAdmin } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const MEBIBYTE = 1024 * 1024;

let app: TestApp;
let store: MemoryResultStore;

beforeEach(async () => {
  store = new MemoryResultStore();
  const renderer = { render: async () => samples.webp };
  app = await useTestApp({ resultStore: store, renderer, settings: metricsSettings });
  for (const id of [1, 2, 3, 4]) app.originals.put(`icons/${id}/ab`, samples.jpeg);
});

const get = async (id: number): Promise<string> => {
  const { headers } = await app.get(`/icons/${id}/ab.webp?size=16`);
  return String(headers['cache-status']).includes('detail=store') ? 'stored' : 'rendered';
};

function useFakeTimeouts(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}

test('a failing store is logged once, and no client gets an error', async () => {
  store.failure = new Error('the bucket is gone');
  for (const id of [1, 2, 3]) expect(await get(id)).toBe('rendered');
  expect(app.log.entries.filter(({ level }) => level === 'warn')).toHaveLength(2);
  expect(app.log.errors).toEqual([]);
});

test('the deadline of a read grows with the size of its result; a read that exceeds it is rendered', async () => {
  useFakeTimeouts();
  const found = defer<void>();
  /** Sends a request, and waits until the store reports a size, if it does. */
  const begin = async (id: number, sizeBytes?: number): Promise<[Promise<string>]> => {
    store.read = async ({ originKey }, _signal, onFound) => {
      if (sizeBytes !== undefined) onFound(sizeBytes);
      await found.promise;
      return { body: Buffer.from(originKey), mimeType: 'image/webp' };
    };
    const response = get(id);
    await settle(5);
    return [response];
  };
  const [large] = await begin(1, 32 * MEBIBYTE);
  const [late] = await begin(2, 4 * MEBIBYTE);
  const [waitingRead] = await begin(3);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await waitingRead).toBe('rendered');
  await vi.advanceTimersByTimeAsync(1_500);
  expect(await late).toBe('rendered');
  await vi.advanceTimersByTimeAsync(6_500);
  // The store is slow but does not fail: the next request uses it.
  const [next] = await begin(4, 1);
  found.resolve();
  expect([await large, await next]).toEqual(['stored', 'stored']);
});

describe('a write to the store', () => {
  test('that hangs does not block a purge or a stop', async () => {
    const held = defer<void>();
    store.write = () => held.promise;
    await get(1);
    useFakeTimeouts();
    const purged = sendToAdmin(app, '/purge', { prefix: 'icons/1/' });
    await settle(5);
    await vi.advanceTimersByTimeAsync(15_000);
    expect((await purged).statusCode).toBe(504);
    expect(store.removals).toBe(0);
    const closed = app.close();
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await vi.advanceTimersByTimeAsync(15_000);
    await closed;
    const logged = app.log.entries.find(({ details }) => 'unwritten' in details);
    expect(logged).toMatchObject({ level: 'warn', details: { unwritten: 1 } });
    held.resolve(); // the stop after the test also waits for writes
  });

  test('is awaited by a stop, even if it waits for others', async () => {
    const write = store.write.bind(store);
    store.write = async (...args) => {
      await sleep(100);
      await write(...args);
    };
    const sizes = [16, 20, 22, 24, 28];
    await Promise.all(sizes.map((size) => app.get(`/icons/1/ab.webp?size=${size}`)));
    await app.close();
    expect(store.paths).toHaveLength(sizes.length);
    expect(store.isClosed).toBe(true);
  });
});
