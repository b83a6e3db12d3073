import { describe, expect, it } from 'vitest';
import type { Environment } from '../../src/config/setting.ts';
import { MediaError } from '../../src/contract/errors.ts';
import { type Lane, WorkerLost } from '../../src/pipeline/ports.ts';
import { defer, settle } from '../support/deferred.ts';
import { refuse } from '../support/http/refusal.ts';
import { PausedRenderer } from '../support/paused-renderer.ts';
import type { LaneRenderer } from '../support/render-slots.ts';
import { readSample, samples, type TestApp, useTestApp } from '../support/test-app.ts';

let app: TestApp;
/** 16 frames of 320 × 320, scaled one by one: heavy. */
const animation = readSample('attachments/1/6/moon.gif');
/** The same with more bytes. Tests that block the renderer do not decode it. */
const large = Buffer.concat([animation, Buffer.alloc(2 * 1024 * 1024)]);
const heavyUrl = (id: number): string => `/emojis/${id}.gif?size=240`;
const lightUrl = (id: number): string => `/icons/${id}/ab.webp?size=16`;

async function startWith<Its extends LaneRenderer>(renderer: Its, settings: Environment = {}) {
  app = await useTestApp({ renderer, settings });
  for (let id = 1; id <= 200; id += 1) {
    app.originals.put(`emojis/${id}`, animation);
    app.originals.put(`icons/${id}/ab`, samples.jpeg);
  }
  return renderer;
}

describe('concurrent heavy renders', () => {
  it('leave capacity for light ones, and are rejected at once when the queue is full', async () => {
    const renderer = await startWith(new PausedRenderer('both'));
    const crowd = Array.from({ length: 100 }, (_, index) => app.get(heavyUrl(index + 1)));
    const refused = await Promise.race(crowd);
    expect(refused.statusCode).toBe(503);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(1);
    expect(renderer.jobs.map(({ lane }) => lane)).toEqual(['heavy']);

    const light = app.get(lightUrl(1));
    await expect.poll(() => renderer.jobs.length).toBe(2);
    expect(renderer.jobs[1]?.lane).toBe('light');
    renderer.jobs[1]?.finish();
    expect((await light).statusCode).toBe(200);

    // A recently read original is not requested again to be rejected.
    app.originals.put('emojis/101', large);
    const still = app.get('/emojis/101.png?size=16');
    await expect.poll(() => renderer.jobs.length).toBe(3);
    await refuse(app, heavyUrl(101), 'OVERLOADED', 'no-store');
    expect(app.originals.reads.get('emojis/101')).toBe(1);

    // One running, 64 queued, the others rejected.
    renderer.release();
    expect((await still).statusCode).toBe(200);
    const statuses = (await Promise.all(crowd)).map(({ statusCode }) => statusCode);
    expect(statuses.sort()).toEqual([...Array(65).fill(200), ...Array(35).fill(503)]);
  });

  it('are rejected before their originals fill the memory', async () => {
    const renderer = await startWith(new PausedRenderer('both'), {
      MAX_ORIGINAL_BYTES: String(4 * 1024 * 1024),
      ORIGINALS_MEMORY_BYTES: String(12 * 1024 * 1024),
    });
    for (let id = 1; id <= 7; id += 1) app.originals.put(`emojis/${id}`, large);
    // Two originals of 2 MiB fit into the half of heavy renders; a shared one counts once.
    const held = [heavyUrl(1), '/emojis/1.gif?size=160', heavyUrl(2)].map((url) => app.get(url));
    await expect.poll(() => app.originals.openBodies).toBe(0);
    await expect.poll(() => renderer.jobs.length).toBe(1);
    const headers = await refuse(app, heavyUrl(3), 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toBe('1');
    // Light renders of equally large originals may use all of the rest.
    const lightOf = (id: number) => app.get(`/emojis/${id}.png?size=16`);
    const light = [4, 5, 6].map(lightOf);
    await expect.poll(() => app.originals.reads.get('emojis/6')).toBe(1);
    expect((await lightOf(7)).statusCode).toBe(503);
    renderer.release();
    for (const { statusCode } of await Promise.all([...light, ...held])) {
      expect(statusCode).toBe(200);
    }
    expect((await app.get(heavyUrl(3))).statusCode).toBe(200);
  });
});

describe('a render that exceeds the deadline', () => {
  const TEN_MINUTES_MS = 600_000;

  class LateRenderer implements LaneRenderer {
    lateFromPx: number;
    readonly begun: (readonly [Lane, number])[] = [];
    readonly timeoutsMs = new Set<number>();
    held: Promise<void> | undefined;

    constructor(lateFromPx: number) {
      this.lateFromPx = lateFromPx;
    }

    render: LaneRenderer['render'] = async (_original, { size }, { lane, timeoutMs }) => {
      this.begun.push([lane, size.widthPx]);
      this.timeoutsMs.add(timeoutMs);
      await this.held;
      if (size.widthPx < this.lateFromPx) return samples.webp;
      const cause = new WorkerLost('killed at its deadline');
      throw new MediaError('TRANSFORM_TIMEOUT', { cause });
    };
  }

  const urlOf = (size: number, id = 1): string => `/icons/${id}/ab.webp?size=${size}`;
  const statusOf = async (url: string) => (await app.get(url)).statusCode;

  it('gets a 504 for ten minutes, like costlier ones of its original; cheaper ones are rendered', async () => {
    const { begun } = await startWith(new LateRenderer(24));
    await refuse(app, urlOf(24), 'TRANSFORM_TIMEOUT', 'no-store');
    expect(begun.splice(0)).toEqual([['light', 24]]);
    for (const elapsedMs of [0, 60_000, TEN_MINUTES_MS - 60_001]) {
      app.clock.advance(elapsedMs);
      expect(await Promise.all([24, 28, 32].map((size) => statusOf(urlOf(size))))).toEqual(
        Array(3).fill(504),
      );
      expect(begun).toEqual([]);
      expect(await statusOf(urlOf(22))).toBe(200);
      expect(await statusOf(urlOf(16))).toBe(200);
      begun.length = 0;
    }
    app.clock.advance(1);
    expect(await statusOf(urlOf(28))).toBe(504);
    expect(begun).toEqual([['light', 28]]);
    expect(await statusOf(urlOf(28, 2))).toBe(504);
    expect(begun).toHaveLength(2);
  });

  it('rejects costlier ones for ten minutes from then on, even if they exceeded it earlier', async () => {
    const renderer = await startWith(new LateRenderer(20));
    expect(await statusOf(urlOf(28))).toBe(504);
    app.clock.advance(TEN_MINUTES_MS - 1);
    expect(await statusOf(urlOf(20))).toBe(504);
    renderer.begun.length = 0;
    app.clock.advance(TEN_MINUTES_MS - 1);
    expect(await statusOf(urlOf(28))).toBe(504);
    expect(renderer.begun).toEqual([]);
    app.clock.advance(1);
    renderer.lateFromPx = Infinity;
    expect(await statusOf(urlOf(28))).toBe(200);
  });

  it('rejects waiting renders of larger sizes, so that only renders in progress use workers', async () => {
    const renderer = await startWith(new LateRenderer(16));
    const end = defer<void>();
    renderer.held = end.promise;
    const first = [16, 20].map((size) => statusOf(urlOf(size)));
    await expect.poll(() => renderer.begun.length).toBe(2);
    const others = [22, 24, 28, 32].map((size) => statusOf(urlOf(size)));
    await settle(4);
    end.resolve();
    expect(await Promise.all([...first, ...others])).toEqual(Array(6).fill(504));
    expect(renderer.begun).toEqual([
      ['light', 16],
      ['light', 20],
    ]);
  });

  it('has the same deadline in both lanes', async () => {
    const { begun, timeoutsMs } = await startWith(new LateRenderer(Infinity));
    expect(await statusOf(urlOf(16))).toBe(200);
    expect(await statusOf(heavyUrl(1))).toBe(200);
    expect(begun.map(([lane]) => lane)).toEqual(['light', 'heavy']);
    expect([...timeoutsMs]).toEqual([15_000]);
  });
});

describe('limits of the origin', () => {
  const renderer: LaneRenderer = { render: async () => samples.webp };

  it('slow readers of attachments do not delay transforms', async () => {
    const limits = { ORIGIN_MAX_STREAMS: '2', ORIGIN_MAX_READS: '1', QUEUE_TIMEOUT_MS: '50' };
    await startWith(renderer, limits);
    const url = '/attachments/1/2/film.mp4';
    app.originals.put('attachments/1/2/film.mp4', Buffer.alloc(64 * 1024 * 1024));
    const slow = await Promise.all([1, 2].map(() => app.begin(url)));
    for (const socket of slow) socket.pause();
    await expect.poll(() => app.originals.openBodies).toBe(2);
    await refuse(app, url, 'OVERLOADED', 'no-store');
    expect((await app.get(lightUrl(1))).statusCode).toBe(200);
    for (const socket of slow) socket.destroy();
    await expect.poll(() => app.originals.openBodies).toBe(0);
    expect((await app.get(url, { range: 'bytes=0-9' })).statusCode).toBe(206);
  });

  it('limit the number of originals that are read at a time', async () => {
    let maxConcurrent = 0;
    await startWith(renderer, { ORIGIN_MAX_READS: '3' });
    app.originals.alter = async (object) => {
      maxConcurrent = Math.max(maxConcurrent, app.originals.openBodies);
      await settle();
      return object;
    };
    const responses = Array.from({ length: 20 }, (_, index) => app.get(lightUrl(index + 1)));
    for (const { statusCode } of await Promise.all(responses)) expect(statusCode).toBe(200);
    expect(maxConcurrent).toBe(3);
  });
});
