import { describe, expect, it } from 'vitest';
import type { Environment } from '../../src/config/setting.ts';
import { MediaError } from '../../src/contract/errors.ts';
import { type Lane, WorkerLost } from '../../src/pipeline/ports.ts';
import { settle } from '../support/deferred.ts';
import { HeldRenderer } from '../support/held-renderer.ts';
import { refuse } from '../support/http/refusal.ts';
import type { LaneRenderer } from '../support/render-slots.ts';
import { readSample, samples, type TestApp, useTestApp } from '../support/test-app.ts';

let app: TestApp;
/** 16 frames of 320 × 320, scaled one by one: heavy. */
const animation = readSample('attachments/1/6/moon.gif');
/** The same, of more bytes; not decoded where the renderer is held. */
const large = Buffer.concat([animation, Buffer.alloc(2 * 1024 * 1024)]);
const heavyUrl = (id: number): string => `/emojis/${id}.gif?size=240`;
const lightUrl = (id: number): string => `/icons/${id}/ab.webp?size=16`;

/** The service with so many originals of either kind, ids from 1 on. */
async function startWith<Its extends LaneRenderer>(renderer: Its, settings: Environment = {}) {
  app = await useTestApp({ renderer, settings });
  for (let id = 1; id <= 200; id += 1) {
    app.originals.put(`emojis/${id}`, animation);
    app.originals.put(`icons/${id}/ab`, samples.jpeg);
  }
  return renderer;
}

describe('a crowd of heavy renders', () => {
  it('leaves the light ones their share, and is refused at once beyond what can wait', async () => {
    const renderer = await startWith(new HeldRenderer('both'));
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

    // An original that was read lately is not asked for once more, only to be refused.
    app.originals.put('emojis/101', large);
    const still = app.get('/emojis/101.png?size=16');
    await expect.poll(() => renderer.jobs.length).toBe(3);
    await refuse(app, heavyUrl(101), 'OVERLOADED', 'no-store');
    expect(app.originals.reads.get('emojis/101')).toBe(1);

    // One in work, 64 in the queue, the others turned away.
    renderer.release();
    expect((await still).statusCode).toBe(200);
    const statuses = (await Promise.all(crowd)).map(({ statusCode }) => statusCode);
    expect(statuses.sort()).toEqual([...Array(65).fill(200), ...Array(35).fill(503)]);
  });

  it('is refused before its originals fill the memory', async () => {
    const renderer = await startWith(new HeldRenderer('both'), {
      MAX_ORIGINAL_BYTES: String(4 * 1024 * 1024),
      ORIGINALS_MEMORY_BYTES: String(12 * 1024 * 1024),
    });
    for (let id = 1; id <= 7; id += 1) app.originals.put(`emojis/${id}`, large);
    // Two of some 2 MiB fit into the half of heavy renders; one that two of them share counts once.
    const held = [heavyUrl(1), '/emojis/1.gif?size=160', heavyUrl(2)].map((url) => app.get(url));
    await expect.poll(() => app.originals.openBodies).toBe(0);
    await expect.poll(() => renderer.jobs.length).toBe(1);
    const headers = await refuse(app, heavyUrl(3), 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toBe('1');
    // Light renders of originals as large are not refused: the rest is theirs, as far as it goes.
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

describe('a light render that turns out to be heavy', () => {
  /** Never done in the light lane, within anything in the heavy one. */
  class SlowRenderer implements LaneRenderer {
    readonly lanes: Lane[] = [];
    readonly timeoutsMs: number[] = [];
    render: LaneRenderer['render'] = async (_original, _job, { lane, timeoutMs }) => {
      this.lanes.push(lane);
      this.timeoutsMs.push(timeoutMs);
      const cause = new WorkerLost('killed at its deadline');
      if (lane === 'light') throw new MediaError('TRANSFORM_TIMEOUT', { cause });
      return samples.webp;
    };
  }

  it('goes on among the heavy ones, and so do the others of its original', async () => {
    const renderer = await startWith(new SlowRenderer(), { WORKERS: '2' });
    const lanesOf = async (url: string) => {
      expect((await app.get(url)).statusCode).toBe(200);
      return renderer.lanes.splice(0);
    };
    expect(await lanesOf(lightUrl(1))).toEqual(['light', 'heavy']);
    expect(renderer.timeoutsMs).toEqual([3_000, 15_000]);
    expect(await lanesOf('/icons/1/ab.webp?size=20')).toEqual(['heavy']);
    // Another original is innocent.
    expect(await lanesOf(lightUrl(2))).toEqual(['light', 'heavy']);
    // The machine may only have been busy.
    app.clock.advance(60_000);
    expect(await lanesOf('/icons/1/ab.webp?size=22')).toEqual(['light', 'heavy']);
  });

  it('costs its lane one worker, in however many sizes it is asked for at once', async () => {
    const renderer = await startWith(new SlowRenderer());
    const urls = [16, 20, 22, 24, 28, 32].map((size) => `/icons/1/ab.webp?size=${size}`);
    const responses = await Promise.all(urls.map((url) => app.get(url)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(urls.map(() => 200));
    expect(renderer.lanes.filter((lane) => lane === 'light')).toHaveLength(1);
  });

  it('gets no more time than there is at all, and not twice of it', async () => {
    const renderer = await startWith(new SlowRenderer(), { TRANSFORM_TIMEOUT_MS: '1000' });
    await refuse(app, lightUrl(1), 'TRANSFORM_TIMEOUT', 'no-store');
    expect(renderer.timeoutsMs).toEqual([1_000]);
    await refuse(app, '/icons/1/ab.webp?size=20', 'TRANSFORM_TIMEOUT', 'no-store');
    expect(renderer.lanes).toEqual(['light']);
  });
});

describe('the bounds of the origin', () => {
  const renderer: LaneRenderer = { render: async () => samples.webp };

  it('readers of attachments, however slow, take no place from transforms', async () => {
    const bounds = { ORIGIN_MAX_STREAMS: '2', ORIGIN_MAX_READS: '1', QUEUE_TIMEOUT_MS: '50' };
    await startWith(renderer, bounds);
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

  it('only so many originals are read at once', async () => {
    let mostAtOnce = 0;
    await startWith(renderer, { ORIGIN_MAX_READS: '3' });
    app.originals.alter = async (object) => {
      mostAtOnce = Math.max(mostAtOnce, app.originals.openBodies);
      await settle();
      return object;
    };
    const asked = Array.from({ length: 20 }, (_, index) => app.get(lightUrl(index + 1)));
    for (const { statusCode } of await Promise.all(asked)) expect(statusCode).toBe(200);
    expect(mostAtOnce).toBe(3);
  });
});
