import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { AccessRefused } from '../../../src/pipeline/ports.ts';
import { judgeReadiness, type Vitals } from '../../../src/telemetry/readiness.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const WELL: Vitals = {
  isClosing: false,
  readyWorkers: { light: 1, heavy: 1 },
  origin: { state: 'reachable', hasResponded: true },
  isMarkerMissing: false,
  isStoreFailing: false,
  storeShortcoming: undefined,
  crowdedLanes: [],
  areUploadsFull: false,
  connections: {
    connections: 1,
    maxConnections: 10,
    requests: 1,
    maxRequests: 5,
    slowReaders: 0,
    evicted: 0,
    turnedAway: 0,
  },
};

/** How a replica is judged: by the status, what has changed, and the reasons. */
const judgements: Readonly<
  Record<string, Readonly<Record<string, readonly [Partial<Vitals>, ...reasons: string[]]>>>
> = {
  ready: { 'all is well': [{}] },
  'not ready': {
    'it stops': [{ isClosing: true }, 'draining'],
    'it has no workers': [
      { readyWorkers: { light: 0, heavy: 0 } },
      ...['no worker is ready', 'no worker for heavy renders is ready'],
    ],
    'it has not heard of the origin yet': [
      { origin: { state: 'unknown', hasResponded: false } },
      'the origin has not answered yet',
    ],
    'it has heard nothing good of it since its start': [
      { origin: { state: 'failing', hasResponded: false } },
      'the origin has failed since the start',
    ],
    'its folder is not the one that is meant': [
      { isMarkerMissing: true },
      'the file STORAGE_MARKER is missing: another folder is in its place',
    ],
    'every request would be turned away': [
      { connections: { ...WELL.connections, requests: 5 } },
      'as many requests as there may be are under way',
    ],
    'several things are wrong': [
      { isClosing: true, isStoreFailing: true },
      ...['draining', 'the store of renderings fails; they are made anew'],
    ],
  },
  degraded: {
    'it has none for heavy renders': [
      { readyWorkers: { light: 1, heavy: 0 } },
      'no worker for heavy renders is ready',
    ],
    'the origin fails, for all replicas': [
      { origin: { state: 'failing', hasResponded: true } },
      'the origin fails; what is kept is served',
    ],
    'the store fails': [
      { isStoreFailing: true },
      'the store of renderings fails; they are made anew',
    ],
    'renderings are not stored': [
      { storeShortcoming: 'another process owns the folder' },
      'another process owns the folder',
    ],
    'renders are turned away': [
      { crowdedLanes: ['light', 'heavy'] },
      ...['light', 'heavy'].map((lane) => `${lane} renders are turned away; hits are served`),
    ],
    'uploads are turned away': [
      { areUploadsFull: true },
      'uploads are turned away; media are served',
    ],
  },
};

describe.each(Object.entries(judgements))('a replica is %s', (status, rows) => {
  it.each(Object.entries(rows))('where %s', (_, [changes, ...reasons]) => {
    expect(judgeReadiness({ ...WELL, ...changes })).toEqual({ status, reasons });
  });
});

describe('what a replica knows of the origin', () => {
  let app: TestApp;

  /** Without what stands in the way of every test app: that its workers are not its own. */
  async function judge(): Promise<string[]> {
    const { reasons } = (await app.askAdmin('/readyz')).json();
    return reasons.filter((reason: string) => !reason.includes('worker'));
  }

  /** The service before an origin that fails with this, or does not. */
  async function start(failure?: Error): Promise<MemoryOrigin> {
    const origin = new MemoryOrigin();
    origin.failure = failure;
    app = await useTestApp({ origin, settings: metricsSettings });
    return origin;
  }

  const countReads = ({ reads }: MemoryOrigin) => [...reads.values()].reduce((a, b) => a + b, 0);

  it('it learns at its start, and again when it has heard nothing for a while', async () => {
    const origin = await start();
    await expect.poll(judge).toEqual([]);
    expect(countReads(origin)).toBe(1);
    for (let time = 0; time < 5; time += 1) await judge();
    expect(countReads(origin)).toBe(1);
    app.clock.advance(10_000);
    await judge();
    expect(countReads(origin)).toBe(2);
    // What requests hear counts as well.
    app.clock.advance(9_000);
    await app.get('/icons/1/none.png');
    app.clock.advance(9_000);
    await judge();
    expect(countReads(origin)).toBe(3);
  });

  it('an origin that fails is a reason, but what is cached is served; it heals by itself', async () => {
    const origin = await start();
    origin.put('icons/1/ab', samples.jpeg);
    const asset = '/icons/1/ab.webp?size=16';
    expect((await app.get(asset)).statusCode).toBe(200);
    await expect.poll(judge).toEqual([]);

    origin.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    expect((await app.get('/icons/1/other.png')).statusCode).toBe(502);
    // One object may fail; an origin is down when nothing is heard of it any more.
    app.clock.advance(1_000);
    expect(await judge()).toEqual([]);
    app.clock.advance(10_000);
    await judge();
    const failing = ['the origin fails; what is kept is served'];
    await expect.poll(judge).toEqual(failing);
    expect((await scrape(app)).read('darkroom_origin_reachable')).toBe(0);
    expect((await app.get(asset)).headers['cache-status']).toBe('darkroom; hit');

    origin.failure = undefined;
    app.clock.advance(1_000);
    await judge();
    await expect.poll(judge).toEqual([]);
    expect((await scrape(app)).read('darkroom_origin_reachable')).toBe(1);
  });

  it('one that was never reached keeps it out of service', async () => {
    const cause = new Error('InvalidAccessKeyId');
    const origin = await start(new MediaError('ORIGIN_ERROR', { cause }));
    await expect.poll(judge).toEqual(['the origin has failed since the start']);
    expect((await app.askAdmin('/readyz')).statusCode).toBe(503);
    origin.failure = undefined;
    app.clock.advance(1_000);
    await judge();
    await expect.poll(judge).toEqual([]);
  });

  it('why it fails is logged at once, and once a minute while that lasts', async () => {
    const cause = new Error('connect ECONNREFUSED');
    const origin = await start(new MediaError('ORIGIN_ERROR', { cause }));
    const reasons = () =>
      app.log.errors.flatMap((details) => ('storage' in details ? [details] : []));
    await expect.poll(reasons).toMatchObject([
      {
        storage: `folder ${resolve('fixtures/originals')}`,
        reason: expect.stringMatching(/: connect ECONNREFUSED$/),
      },
    ]);
    for (let seconds = 0; seconds < 60; seconds += 1) {
      expect(reasons()).toHaveLength(1);
      app.clock.advance(1_000);
      const reads = countReads(origin);
      await judge();
      await expect.poll(() => countReads(origin)).toBe(reads + 1);
    }
    await expect.poll(reasons).toHaveLength(2);
    // What fails anew is news again.
    origin.failure = undefined;
    app.clock.advance(1_000);
    await judge();
    await expect.poll(judge).toEqual([]);
    origin.failure = new MediaError('ORIGIN_TIMEOUT');
    app.clock.advance(11_000);
    await judge();
    await expect.poll(reasons).toHaveLength(3);
    expect(reasons()[2]).toMatchObject({
      reason: 'no answer within ORIGIN_FIRST_BYTE_TIMEOUT_MS',
    });
  });

  it('one that hangs has not answered, either', async () => {
    const settings = { ...metricsSettings, ORIGIN_FIRST_BYTE_TIMEOUT_MS: '30' };
    app = await useTestApp({ origin: { read: () => new Promise(() => undefined) }, settings });
    expect(await judge()).toEqual(['the origin has not answered yet']);
    await expect.poll(judge).toEqual(['the origin has failed since the start']);
  });

  it('one that knows us and shows no missing object is reachable', async () => {
    await start(new MediaError('ORIGIN_ERROR', { cause: new AccessRefused('AccessDenied') }));
    await expect.poll(judge).toEqual([]);
  });
});
