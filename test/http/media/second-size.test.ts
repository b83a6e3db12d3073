import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Renderer } from '../../../src/pipeline/ports.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { readSample, samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const first = '/icons/1/ab.webp?size=16';
const second = '/icons/1/ab.webp?size=20';

let app: TestApp;

/** Has the first size of an original rendered; what comes of the second one is the test's affair. */
async function startWith(renderSecond: Renderer['render']): Promise<void> {
  let renders = 0;
  const renderer: Renderer = {
    render: (...run) => {
      renders += 1;
      return renders === 1 ? Promise.resolve(samples.webp) : renderSecond(...run);
    },
  };
  app = await useTestApp({ renderer, logged: 'info', settings: metricsSettings });
  app.originals.put('icons/1/ab', samples.jpeg);
  expect((await app.send('GET', first)).status).toBe(200);
  await expect.poll(() => app.requests).toHaveLength(1);
}

async function counted(status: number, cache: string): Promise<number> {
  const labels = { resource: 'guild icon', status: String(status), cache };
  return (await scrape(app)).read('darkroom_requests_total', labels);
}

describe('a second size of an original that is known, and fresh', () => {
  it.each([
    ['UNPROCESSABLE_MEDIA', 422],
    ['OVERLOADED', 503],
    ['TRANSFORM_TIMEOUT', 504],
  ] as const)('is no hit where it cannot be made: %s', async (code, status) => {
    const failure = new MediaError(code, {
      cause: new Error('scripted'),
      bottleneck: 'workers',
      retryAfterSeconds: 1,
    });
    await startWith(() => Promise.reject(failure));
    const response = await app.send('GET', second);
    expect(response.status).toBe(status);
    expect(response.headers['cache-status']).toBe('darkroom; fwd=miss');
    await expect.poll(() => app.requests).toHaveLength(2);
    expect(app.requests[1]).toMatchObject({ status, code, cache: 'miss' });
    expect(await counted(status, 'miss')).toBe(1);
    expect(await counted(status, 'memory')).toBe(0);
  });

  it('is no hit for a client that leaves before it is made', async () => {
    let hasBegun = false;
    await startWith((_original, _job, { signal }) => {
      hasBegun = true;
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
    const client = await app.begin(second);
    await expect.poll(() => hasBegun).toBe(true);
    client.destroy();
    await expect.poll(() => app.requests).toHaveLength(2);
    expect(app.requests[1]).toMatchObject({ status: 499, cache: 'miss', bytes: 0 });
    expect(await counted(499, 'miss')).toBe(1);
    expect(await counted(499, 'memory')).toBe(0);
  });

  it('is a hit for a client that has it already: nothing is made', async () => {
    await startWith(() => Promise.reject(new Error('not needed')));
    const headers = { 'If-Modified-Since': new Date(0).toUTCString() };
    const response = await app.send('GET', second, headers);
    expect(response.status).toBe(304);
    expect(response.headers['cache-status']).toBe('darkroom; hit');
  });
});

describe('stages that were entered are in the headers, also where one was left in vain', () => {
  it.each([
    ['the origin, that was not asked before', {}, 'store;dur=0, origin;dur=7'],
    // The look into the originals' memory ends it: they are there, and the origin is not asked.
    ['but none that was not', { CACHE_ORIGINALS_BYTES: '67108864' }, 'store;dur=0'],
  ])('%s', async (_, settings, expected) => {
    // Bodies break off in their midst where that is wanted, after 7 ms.
    let breaks = false;
    const cut = async function* () {
      yield samples.jpeg.subarray(0, 1_000);
      app.clock.advance(7);
      throw new Error('cut');
    };
    const failure = new MediaError('UNPROCESSABLE_MEDIA', { cause: new Error('scripted') });
    app = await useTestApp({
      renderer: {
        render: (_original, _job, { signal }) => {
          signal.throwIfAborted();
          return breaks ? Promise.reject(failure) : Promise.resolve(samples.webp);
        },
      },
      logged: 'info',
      settings: { ...metricsSettings, CACHE_ORIGINALS_BYTES: '0', ...settings },
    });
    app.originals.put('icons/1/ab', samples.jpeg);
    expect((await app.send('GET', first)).status).toBe(200);
    breaks = true;
    app.originals.alter = (object) => {
      object.body.destroy();
      return { ...object, body: Readable.from(cut(), { objectMode: false }) };
    };
    const before = (await scrape(app)).read('darkroom_stage_seconds_count', { stage: 'origin' });
    const { status, headers } = await app.send('GET', second);
    const isRead = expected.includes('origin');
    expect(status).toBe(isRead ? 502 : 422);
    expect(String(headers['server-timing']).replace(/, queue.*/, '')).toBe(expected);
    await expect.poll(() => app.requests).toHaveLength(2);
    expect(app.requests[1]?.stagesMs.origin).toBe(isRead ? 7 : undefined);
    const { read } = await scrape(app);
    const entered = read('darkroom_stage_seconds_count', { stage: 'origin' }) - before;
    expect(entered).toBe(isRead ? 1 : 0);
  });

  it('the origin, for the first frames by which an animation is turned away', async () => {
    const renderer: Renderer = { render: () => new Promise(() => undefined) };
    const settings = { WORKERS: '1', QUEUE_PER_WORKER: '0' };
    app = await useTestApp({ renderer, settings });
    const animation = readSample('attachments/1/6/moon.gif');
    for (const id of [1, 2]) app.originals.put(`emojis/${id}`, animation);
    // One that is seen while nothing is in the way, and one in the way.
    const still = await app.server.inject({
      url: '/emojis/2.gif?size=240',
      headers: { 'if-modified-since': new Date(0).toUTCString() },
    });
    expect(still.statusCode).toBe(304);
    void app.get('/emojis/1.gif?size=240');
    await expect.poll(() => app.renderer.renders).toBe(1);
    const refused = await app.get('/emojis/2.gif?size=240');
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['server-timing']).toBe('store;dur=0, origin;dur=0');
  });
});
