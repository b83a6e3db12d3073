import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

// test/telemetry/events.test.ts checks counters. This file checks sizes, lengths and states.

async function start({ settings, ...options }: TestAppOptions = {}) {
  const app = await useTestApp({ ...options, settings: { ...metricsSettings, ...settings } });
  app.originals.put('icons/1/ab', samples.jpeg);
  return app;
}

describe('the metrics', () => {
  it('follow the conventions of Prometheus: counters end in _total, and labels have few values', async () => {
    const app = await start({ resultStore: new MemoryResultStore() });
    await sleep(30); // for the event loop lag
    const targets = ['/icons/1/ab.webp', '/emojis/123456789.png', '/x', '/attachments/1/2/a'];
    for (const target of targets) await app.send('GET', target);
    const { types, samples: series, read } = await scrape(app);
    const ownMetrics = [...types].filter(([name]) => name.startsWith('darkroom_'));
    expect(ownMetrics.length).toBeGreaterThan(30);
    for (const [name, type] of ownMetrics)
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
    for (const { name, labels } of series.filter(({ name }) => name.startsWith('darkroom_'))) {
      expect(Object.keys(labels).length, name).toBeLessThanOrEqual(3);
      for (const value of Object.values(labels)) expect(value).not.toMatch(/123456789|\//);
    }
    expect(types.get('process_cpu_seconds_total')).toBe('counter');
    expect(types.get('nodejs_eventloop_lag_max_seconds')).toBe('gauge');
    expect(series.find(({ name }) => name === 'darkroom_build_info')).toMatchObject({
      labels: { version: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
      value: 1,
    });
    expect(read('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
    expect(read('darkroom_queue_wait_seconds_bucket', { lane: 'light', le: '0.005' })).toBe(1);
    expect(read('darkroom_stage_seconds_bucket', { stage: 'render', le: '0.001' })).toBe(1);
  });

  it('show the use of lanes, slots, originals, requests and connections', async () => {
    const rendered = defer<Uint8Array>();
    const renderer = { render: () => rendered.promise };
    const app = await start({ renderer, settings: { WORKERS: '1', QUEUE_PER_WORKER: '2' } });
    const responses = [16, 20, 22, 24].map((size) =>
      app.send('GET', `/icons/1/ab.webp?size=${size}`),
    );
    const readOf = async (name: string, labels?: Record<string, string>) =>
      (await scrape(app)).read(`darkroom_${name}`, labels);
    await expect.poll(() => readOf('queue_length', { lane: 'light' })).toBe(2);
    for (const [lane, { slots, held }] of Object.entries({
      light: { slots: 2, held: 2 },
      heavy: { slots: 1, held: 0 },
    })) {
      expect(await readOf('slots', { lane })).toBe(slots);
      expect(await readOf('slots_held', { lane })).toBe(held);
    }
    expect(await readOf('originals_held_bytes')).toBeGreaterThanOrEqual(samples.jpeg.length);
    expect(await readOf('requests_in_flight')).toBe(4);
    expect(await readOf('connections')).toBe(4);
    rendered.resolve(samples.webp);
    await Promise.all(responses);
    for (const name of ['originals_held_bytes', 'requests_in_flight', 'connections']) {
      await expect.poll(() => readOf(name)).toBe(0);
    }
    expect(await readOf('queue_length', { lane: 'light' })).toBe(0);
  });

  it('show the size, entries and evictions of caches', async () => {
    const app = await start({ settings: { CACHE_MEMORY_BYTES: '4000' } });
    for (const size of [16, 20, 22, 24, 28, 32]) {
      await app.send('GET', `/icons/1/ab.webp?size=${size}`);
    }
    const { read } = await scrape(app);
    const results = { cache: 'results' };
    const entries = read('darkroom_cache_entries', results);
    expect(entries).toBeGreaterThan(0);
    expect(read('darkroom_cache_evictions_total', results)).toBe(6 - entries);
    expect(read('darkroom_cache_max_bytes', results)).toBe(4000);
    expect(read('darkroom_cache_bytes', results)).toBeGreaterThan(entries * 512);
    expect(read('darkroom_cache_bytes', results)).toBeLessThanOrEqual(4000);
    const originals = { cache: 'originals' };
    expect(read('darkroom_cache_bytes', originals)).toBeGreaterThan(samples.jpeg.length);
    expect(read('darkroom_cache_hits_total', originals)).toBe(5);
    expect(read('darkroom_cache_misses_total', originals)).toBe(1);
  });
});
