import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { type PausedJob, PausedRenderer } from '../../support/paused-renderer.ts';
import { readSample, samples, type TestApp, useTestApp } from '../../support/test-app.ts';

/** 16 frames of 320 × 320: heavy. */
const animation = readSample('attachments/1/6/moon.gif');
/** Original that takes seconds to encode as WebP. */
const costly = await sharp({
  create: { width: 4_000, height: 3_000, channels: 3, background: '#123' },
})
  .png()
  .toBuffer();

let app: TestApp;
/** Starts a service on `cores` cores with a controlled renderer. */
async function start(settings: Readonly<Record<string, string>>) {
  const renderer = new PausedRenderer('both');
  app = await useTestApp({ renderer, settings });
  for (let id = 1; id <= 400; id += 1) {
    app.originals.put(`emojis/${id}`, animation);
    app.originals.put(`icons/${id}/ab`, samples.jpeg);
    app.originals.put(`attachments/1/${id}/a.png`, costly);
  }
  let count = 0;
  const request = (path: (id: number) => string) => {
    count += 1;
    return app.get(path(count));
  };
  return {
    renderer,
    light: (size = 16) => request((id) => `/icons/${id}/ab.webp?size=${size}`),
    heavy: (size = 240) => request((id) => `/emojis/${id}.gif?size=${size}`),
    costly: () => request((id) => `/attachments/1/${id}/a.png?format=webp`),
    until: (count: number) => expect.poll(() => renderer.jobs.length).toBe(count),
    finishAll: async (responses: readonly Promise<{ statusCode: number }>[]) => {
      const finishing = setInterval(() => renderer.running[0]?.finish(), 1);
      const statuses = (await Promise.all(responses)).map(({ statusCode }) => statusCode);
      clearInterval(finishing);
      return statuses;
    },
  };
}

/** Sends more requests than can wait. The excess is rejected at once: no render ends, and the clock is stopped. */
async function fill(request: () => Promise<{ statusCode: number }>) {
  const rejected = new Set<Promise<{ statusCode: number }>>();
  const all = Array.from({ length: 100 }, () => {
    const response = request();
    void response.then(() => rejected.add(response));
    return response;
  });
  const last = await all[99];
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { waiting: all.filter((response) => !rejected.has(response)), rejected: last };
}

describe('with too little memory for two lanes', () => {
  const settings = { WORKERS: '1', WORKER_MEMORY_BYTES: String(300 * 2 ** 20) };

  test('renders of both lanes share the only worker', async () => {
    const { renderer, light, heavy, until, finishAll } = await start(settings);
    const first = heavy();
    await until(1);
    let mostAtOnce = 0;
    const watch = setInterval(() => {
      mostAtOnce = Math.max(mostAtOnce, renderer.running.length);
    }, 0);
    const others = [light(), heavy(), light()];
    expect(await finishAll([first, ...others])).toEqual([200, 200, 200, 200]);
    expect(renderer.jobs.map(({ lane }) => lane)).toEqual(['light', 'light', 'light', 'light']);
    clearInterval(watch);
    expect(mostAtOnce).toBe(1);
  });
});

describe('a render that cannot end in time', () => {
  test('is rejected at once if the estimated wait exceeds half of the maximum', async () => {
    const counts: number[] = [];
    for (const QUEUE_TIMEOUT_MS of ['2000', '6000']) {
      const { heavy, finishAll } = await start({ QUEUE_TIMEOUT_MS, QUEUE_PER_WORKER: '1000' });
      const { waiting, rejected } = await fill(heavy);
      expect(rejected).toMatchObject({ statusCode: 503, headers: { 'cache-control': 'no-store' } });
      expect(rejected).toHaveProperty(
        'headers.retry-after',
        QUEUE_TIMEOUT_MS === '2000' ? '2' : '4',
      );
      counts.push(waiting.length);
      await finishAll(waiting);
    }
    const [short = 0, long = 0] = counts;
    expect(short).toBeGreaterThan(1);
    expect(long / short).toBeGreaterThan(2);
    expect(long / short).toBeLessThan(4);
  });

  test('is estimated from the durations of renders, including running ones', async () => {
    const settings = { QUEUE_TIMEOUT_MS: '3000', QUEUE_PER_WORKER: '1000' };
    const usual = await start(settings);
    const all = await fill(usual.heavy);
    await usual.finishAll(all.waiting);

    const slow = await start(settings);
    const renderIn = async (ms: number): Promise<void> => {
      const before = slow.renderer.jobs.length;
      const response = slow.heavy();
      await slow.until(before + 1);
      app.clock.advance(ms);
      slow.renderer.running[0]?.finish();
      expect((await response).statusCode).toBe(200);
    };
    for (let count = 0; count < 24; count += 1) await renderIn(400);
    const learned = await fill(slow.heavy);
    expect(learned.waiting.length).toBeGreaterThan(1);
    expect(learned.waiting.length).toBeLessThan(all.waiting.length / 2);
    await slow.finishAll(learned.waiting);

    const stuck = await start(settings);
    const first = stuck.heavy();
    await stuck.until(1);
    app.clock.advance(2_000);
    const overdue = await fill(stuck.heavy);
    expect(overdue.waiting.length).toBeLessThan(all.waiting.length / 2);
    await stuck.finishAll([first, ...overdue.waiting]);
  });

  test('is estimated without outliers and stopped renders', async () => {
    const settings = { QUEUE_TIMEOUT_MS: '3000', QUEUE_PER_WORKER: '1000' };
    const usual = await start(settings);
    const all = await fill(usual.heavy);
    await usual.finishAll(all.waiting);
    const late = new MediaError('TRANSFORM_TIMEOUT');
    const endings = {
      expensive: { ms: 14_000, end: (job: PausedJob) => job.finish(), status: 200 },
      stopped: { ms: 400, end: (job: PausedJob) => job.fail(late), status: 504 },
    };
    for (const { ms, end, status } of Object.values(endings)) {
      const { renderer, heavy, until, finishAll } = await start(settings);
      for (let count = 1; count <= 5; count += 1) {
        const response = heavy();
        await until(count);
        app.clock.advance(ms);
        for (const job of renderer.running) end(job);
        expect((await response).statusCode).toBe(status);
      }
      const after = await fill(heavy);
      expect(after.waiting.length).toBe(all.waiting.length);
      await finishAll(after.waiting);
    }
  });

  test('is rejected after the maximum wait, and frees its place; a hit does not wait', async () => {
    const { renderer, light, until, finishAll } = await start({ QUEUE_TIMEOUT_MS: '400' });
    const url = '/icons/400/ab.webp?size=16';
    const made = app.get(url);
    await until(1);
    renderer.running[0]?.finish();
    await made;
    // The light lane has one slot more than cores.
    const running = [light(), light()];
    await until(3);
    expect((await light()).statusCode).toBe(503);
    expect((await app.get(url)).headers['cache-status']).toMatch(/; hit/);
    const next = light(20);
    renderer.running[0]?.finish();
    await until(4);
    expect(await finishAll([...running, next])).toEqual([200, 200, 200]);
  });
});

describe('the lanes', () => {
  test('run renders in the order of arrival, each in its own slots', async () => {
    const { renderer, light, heavy, until } = await start({
      WORKERS: '2',
      QUEUE_TIMEOUT_MS: '60000',
    });
    const sizes = [16, 20, 22, 24, 28];
    const responses: Promise<{ statusCode: number }>[] = [];
    for (const size of sizes) responses.push(heavy(size));
    await until(2);
    for (const size of sizes) responses.push(light(size));
    await until(5);
    expect(renderer.running.map(({ lane }) => lane).sort()).toEqual([
      'heavy',
      'heavy',
      'light',
      'light',
      'light',
    ]);
    for (const [lane, waiting] of [
      ['light', 2],
      ['heavy', 3],
    ] as const) {
      for (let ended = 1; ended <= waiting; ended += 1) {
        const before = renderer.jobs.length;
        renderer.running.find((job) => job.lane === lane)?.finish();
        await until(before + 1);
      }
      expect(renderer.jobs.filter((job) => job.lane === lane).map(({ edge }) => edge)).toEqual(
        sizes,
      );
    }
    for (const job of [...renderer.running]) job.finish();
    for (const response of responses) expect((await response).statusCode).toBe(200);
  });

  test('limit costly renders to half of the heavy slots, while others continue', async () => {
    const { renderer, heavy, costly, until, finishAll } = await start({
      WORKERS: '2',
      QUEUE_TIMEOUT_MS: '1000',
    });
    const first = costly();
    await until(1);
    expect((await costly()).statusCode).toBe(503);
    const healthy = heavy();
    await until(2);
    expect(renderer.running.map(({ lane }) => lane)).toEqual(['heavy', 'heavy']);
    expect(await finishAll([first, healthy])).toEqual([200, 200]);
  });
});
