import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Origin, OriginObject } from '../../../src/pipeline/ports.ts';
import { defer } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

const asset = '/icons/1/ab.webp?size=16';

let app: TestApp;

async function start(options: TestAppOptions = {}): Promise<void> {
  app = await useTestApp({ ...options, settings: { ...metricsSettings, ...options.settings } });
  app.originals.put('icons/1/ab', samples.jpeg);
  app.originals.put('attachments/1/2/a.txt', samples.text);
}

beforeEach(() => start());

/** Asks until something is counted: a response is counted when it is closed, just after its client has it. */
async function counted(name: string, labels: Record<string, string>, value: number): Promise<void> {
  await expect.poll(async () => (await scrape(app)).read(name, labels)).toBe(value);
}

describe('requests', () => {
  it('are counted by what they asked for, status and cache', async () => {
    const first = await app.send('GET', asset);
    for (let time = 0; time < 4; time += 1) await app.send('GET', asset);
    await app.send('HEAD', asset);
    await app.send('GET', asset, { 'If-None-Match': '*' });
    await app.send('GET', '/icons/1/none.png');
    await app.send('GET', '/robots.txt');
    await app.send('GET', '/attachments/1/2/a.txt', { Range: 'bytes=0-99' });
    const icons = { resource: 'guild icon' };
    await counted('darkroom_requests_total', { ...icons, status: '200', cache: 'memory' }, 5);
    await counted('darkroom_requests_total', { ...icons, status: '304', cache: 'memory' }, 1);
    await counted('darkroom_requests_total', { ...icons, status: '200', cache: 'miss' }, 1);
    await counted('darkroom_requests_total', { ...icons, status: '404', cache: 'miss' }, 1);
    await counted('darkroom_requests_total', { resource: 'none', status: '404', cache: 'none' }, 1);
    const { read } = await scrape(app);
    expect(read('darkroom_requests_total', { status: '206', cache: 'bypass' })).toBe(1);
    const missing = '{"code":"UNKNOWN_MEDIA","message":"There is no such media."}'.length;
    expect(read('darkroom_sent_bytes_total', icons)).toBe(5 * first.body.length + missing);
    expect(read('darkroom_sent_bytes_total', { resource: 'attachment' })).toBe(100);
    // Two looks of the first hit the usual way, and of the miss.
    expect(read('darkroom_cache_hits_total', { cache: 'results' })).toBe(6);
    expect(read('darkroom_cache_misses_total', { cache: 'results' })).toBe(2);
  });

  it('have stages, in seconds', async () => {
    app.originals.put('icons/1/cd', samples.png);
    await app.send('GET', asset);
    await app.send('GET', '/icons/1/cd.webp');
    for (const stage of ['store', 'origin', 'queue', 'render', 'send']) {
      await counted('darkroom_stage_seconds_count', { stage }, 2);
    }
    await counted('darkroom_queue_wait_seconds_bucket', { lane: 'light', le: '0.005' }, 2);
    await counted('darkroom_queue_wait_seconds_count', { lane: 'heavy' }, 0);
    expect((await scrape(app)).read('darkroom_stage_seconds_sum', { stage: 'render' })).toBe(0);
  });

  it('that share a render are one render', async () => {
    await Promise.all([1, 2, 3].map(() => app.send('GET', asset)));
    await counted('darkroom_requests_total', { cache: 'collapsed' }, 2);
    await counted('darkroom_stage_seconds_count', { stage: 'render' }, 1);
  });

  it('that never were any are counted, too', async () => {
    const client = await app.connect();
    client.write('GET /\x01 HTTP/1.1\r\n\r\n');
    await counted('darkroom_requests_total', { resource: 'none', status: '400' }, 1);
    await app.send('GET', '/', { Host: 'a', 'X-Large': 'x'.repeat(17_000) });
    await counted('darkroom_requests_total', { resource: 'none', status: '431' }, 1);
  });

  it('whose client has gone are 499', async () => {
    await start({ origin: { read: () => new Promise(() => undefined) } });
    const client = await app.begin(asset);
    await expect.poll(async () => (await scrape(app)).read('darkroom_requests_in_flight')).toBe(1);
    client.destroy();
    await counted('darkroom_requests_total', { status: '499' }, 1);
    await counted('darkroom_origin_reads_total', { outcome: 'stopped' }, 1);
  });
});

describe('renders', () => {
  it('that wait and those that are turned away are counted by their lane', async () => {
    const rendered = defer<Uint8Array>();
    await start({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '2' },
      renderer: { render: () => rendered.promise },
    });
    const asked = [16, 20, 22, 24, 28, 32].map((size) =>
      app.send('GET', `/icons/1/ab.webp?size=${size}`),
    );
    await counted('darkroom_queue_length', { lane: 'light' }, 2);
    await counted('darkroom_requests_total', { status: '503' }, 3);
    const { read } = await scrape(app);
    expect(read('darkroom_refusals_total', { reason: 'light lane' })).toBe(3);
    for (const [lane, held] of Object.entries({ light: 1, heavy: 0 })) {
      expect(read('darkroom_slots', { lane })).toBe(1);
      expect(read('darkroom_slots_held', { lane })).toBe(held);
    }
    expect(read('darkroom_originals_held_bytes')).toBeGreaterThan(samples.jpeg.length - 1);
    rendered.resolve(samples.webp);
    await Promise.all(asked);
    await counted('darkroom_queue_length', { lane: 'light' }, 0);
    await counted('darkroom_originals_held_bytes', {}, 0);
  });
});

describe('the origin', () => {
  it('is counted by its responses and bytes, however they are read', async () => {
    await app.send('GET', asset);
    await app.send('GET', '/attachments/1/2/a.txt');
    await app.send('GET', '/icons/1/none.png');
    const read = samples.jpeg.length + samples.text.length;
    await counted('darkroom_origin_read_bytes_total', {}, read);
    // With the probe at the start.
    await counted('darkroom_origin_reads_total', { outcome: 'missing' }, 2);
    await counted('darkroom_origin_reads_total', { outcome: 'found' }, 2);
  });

  it('is counted by its failures', async () => {
    const objects = new Map<string, () => Promise<OriginObject>>([
      ['icons/1/failed', () => Promise.reject(new MediaError('ORIGIN_ERROR'))],
      ['icons/1/late', () => new Promise(() => undefined)],
    ]);
    const origin: Origin = {
      read: (key) => objects.get(key)?.() ?? Promise.reject(new MediaError('UNKNOWN_MEDIA')),
    };
    await start({ origin, settings: { ORIGIN_FIRST_BYTE_TIMEOUT_MS: '50' } });
    expect((await app.send('GET', '/icons/1/failed.png')).status).toBe(502);
    expect((await app.send('GET', '/icons/1/late.png')).status).toBe(504);
    await counted('darkroom_origin_reads_total', { outcome: 'failed' }, 1);
    await counted('darkroom_origin_reads_total', { outcome: 'timeout' }, 1);
  });
});

describe('caches', () => {
  it('are known by their size, their entries and their evictions', async () => {
    await start({ settings: { CACHE_MEMORY_BYTES: '4000' } });
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
    expect(read('darkroom_cache_bytes', { cache: 'originals' })).toBeGreaterThan(
      samples.jpeg.length,
    );
    expect(read('darkroom_cache_hits_total', { cache: 'originals' })).toBe(5);
    expect(read('darkroom_cache_misses_total', { cache: 'originals' })).toBe(1);
  });

  it('are known with the store behind them', async () => {
    const resultStore = new MemoryResultStore();
    await start({ resultStore, settings: { CACHE_MEMORY_BYTES: '0' } });
    await app.send('GET', asset);
    await counted('darkroom_store_writes_total', { outcome: 'written' }, 1);
    await app.send('GET', asset);
    await counted('darkroom_requests_total', { cache: 'store' }, 1);
    await counted('darkroom_cache_hits_total', { cache: 'store' }, 1);
    await counted('darkroom_cache_misses_total', { cache: 'store' }, 1);
  });
});

describe('the process', () => {
  it('is known under the usual names', async () => {
    await sleep(30);
    const { types, read } = await scrape(app);
    expect(types.get('process_cpu_seconds_total')).toBe('counter');
    expect(read('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
    expect(types.get('nodejs_eventloop_lag_max_seconds')).toBe('gauge');
  });
});

describe('names', () => {
  it('are those of Prometheus: base units, totals, few labels of few values', async () => {
    for (const url of [asset, asset, '/emojis/123456789.png', '/x', '/attachments/1/2/a.txt']) {
      await app.send('GET', url);
    }
    const { types, samples: series } = await scrape(app);
    const own = [...types].filter(([name]) => name.startsWith('darkroom_'));
    expect(own.length).toBeGreaterThan(30);
    for (const [name, type] of own) {
      expect(name).toMatch(/^darkroom_[a-z_]+$/);
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent)\b/);
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
    }
    for (const { name, labels } of series.filter(({ name }) => name.startsWith('darkroom_'))) {
      expect(Object.keys(labels).length, name).toBeLessThanOrEqual(3);
      for (const value of Object.values(labels)) expect(value).not.toMatch(/123456789|\/|\.txt/);
    }
  });
});
