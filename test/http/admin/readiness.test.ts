import { rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config/config.ts';
import { MediaError } from '../../../src/contract/errors.ts';
import { AccessRefused } from '../../../src/pipeline/ports.ts';
import { defer } from '../../support/deferred.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { patient } from '../../support/patient.ts';
import { FORK_SERVER } from '../../support/processes/worker-pool.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { metricsSettings, scrape, withToken } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';
import { RELAY_KEY, uploadTarget } from '../../support/uploads/relay-app.ts';

const icon = '/icons/1/ab.webp?size=16';
const never = () => new Promise<never>(() => undefined);

async function start({ settings, ...options }: TestAppOptions = {}): Promise<TestApp> {
  const app = await useTestApp({ ...options, settings: { ...metricsSettings, ...settings } });
  app.originals.put('icons/1/ab', samples.jpeg);
  return app;
}

const request = async (app: TestApp) => (await app.requestAdmin('/readyz')).json();

/** Returns the reasons without those about workers, which test apps share. */
const readReasons = async (app: TestApp): Promise<string[]> =>
  (await request(app)).reasons.filter((reason: string) => !reason.includes('no worker'));

it.each<[reason: string, TestAppOptions, provoke: (app: TestApp) => Promise<unknown>]>([
  [
    'the maximum number of requests is in flight',
    { clientLimits: { maxRequests: 2 }, renderer: { render: never } },
    async (app) => [await app.begin(icon), await app.begin(icon)],
  ],
  [
    'light renders are rejected; hits are served',
    { settings: { WORKERS: '1', QUEUE_PER_WORKER: '1' }, renderer: { render: never } },
    async (app) => {
      for (const size of ['16', '20', '22']) await app.begin(icon.replace('16', size));
    },
  ],
  [
    'uploads are rejected; media are served',
    { settings: { RELAY_SIGNING_KEYS: RELAY_KEY }, uploadLimits: { maxUploads: 1 } },
    async (app) => {
      const head = 'HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n';
      (await app.connect()).write(`PUT ${uploadTarget('icons/2/a')} ${head}`);
    },
  ],
  [
    'the result store fails; media are rendered again',
    { resultStore: Object.assign(new MemoryResultStore(), { failure: new Error('full') }) },
    (app) => app.send('GET', icon),
  ],
])('/readyz reports the reason: %s', async (reason, options, provoke) => {
  const app = await start(options);
  await expect.poll(() => readReasons(app)).toEqual([]);
  await provoke(app);
  await expect.poll(() => readReasons(app)).toEqual([reason]);
});

it('/readyz requires the marker file of the directory', async () => {
  const { path, put } = await useTemporaryDirectory();
  await put('.mounted', new Uint8Array());
  const app = await start({ settings: { STORAGE_DIR: path, STORAGE_MARKER: '.mounted' } });
  await expect.poll(() => readReasons(app)).toEqual([]);
  await rename(join(path, '.mounted'), join(path, '.away'));
  const reason = 'the file STORAGE_MARKER is missing: another directory is mounted';
  await expect.poll(() => readReasons(app)).toEqual([reason]);
});

it('a replica is ready, degraded while its origin fails, and not ready while it stops', async () => {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab', samples.jpeg);
  let nowMs = 0;
  const app = await createApp(readConfig({ WORKERS: '1', ...metricsSettings, ...patient }), {
    ...{ origin, log: new RecordedLog(), clock: { nowMs: () => nowMs } },
    workerFiles: { forkServerFile: FORK_SERVER },
  });
  onTestFinished(app.close);
  await app.started;
  const read = async () => {
    const response = await app.admin?.inject('/readyz');
    const { status, reasons } = response?.json() ?? {};
    const metrics = await app.admin?.inject({ url: '/metrics', headers: withToken });
    const ready = /^darkroom_ready (\d)$/m.exec(metrics?.body ?? '')?.[1];
    return [response?.statusCode, ready, status, ...reasons];
  };
  const pass = async (durationMs: number) => {
    nowMs += durationMs;
    return read();
  };
  await expect.poll(read).toEqual([200, '1', 'ready']);
  origin.failure = new MediaError('ORIGIN_ERROR');
  const failing = [200, '1', 'degraded', 'the origin fails; cached media are served'];
  await expect.poll(() => pass(10_000)).toEqual(failing);
  origin.failure = undefined;
  await expect.poll(() => pass(1_000)).toEqual([200, '1', 'ready']);
  const held = defer<void>();
  origin.alter = async (object) => {
    await held.promise;
    return object;
  };
  const running = fetch(`${await app.server.listen({ port: 0 })}${icon}`);
  await expect.poll(() => origin.reads.get('icons/1/ab')).toBe(1);
  const closed = app.close();
  expect(await read()).toEqual([503, '0', 'not ready', 'draining']);
  expect((await app.admin?.inject('/healthz'))?.json()).toEqual({ status: 'alive' });
  held.resolve();
  expect((await running).status).toBe(200);
  await closed;
});

it('a replica without workers is not ready, for two reasons in a fixed order', async () => {
  const app = await start({ origin: { identity: 'tag' as const, open: never } });
  const { statusCode, json } = await app.requestAdmin('/readyz');
  const [heavy, light] = ['no worker for heavy renders is ready', 'no worker is ready'];
  const reasons = [light, 'the origin has not responded yet', heavy];
  expect(statusCode).toBe(503);
  expect(json()).toMatchObject({ status: 'not ready', reasons });
});

describe('the state of the origin', () => {
  /** Starts a service whose origin fails with this error, if any. */
  async function startWithOrigin(failure?: Error) {
    const origin = new MemoryOrigin();
    origin.failure = failure;
    return { origin, app: await start({ origin }) };
  }
  const countReads = ({ reads }: MemoryOrigin) => [...reads.values()].reduce((a, b) => a + b, 0);
  const reachable = async (app: TestApp) => (await scrape(app)).read('darkroom_origin_reachable');

  it('is checked at the start, and again after a time without requests', async () => {
    const { origin, app } = await startWithOrigin();
    await expect.poll(() => readReasons(app)).toEqual([]);
    for (let time = 0; time < 5; time += 1) await readReasons(app);
    expect(countReads(origin)).toBe(1);
    app.clock.advance(10_000);
    await readReasons(app);
    expect(countReads(origin)).toBe(2);
    // Requests of clients count as checks.
    app.clock.advance(9_000);
    await app.get('/icons/1/none.png');
    app.clock.advance(9_000);
    await readReasons(app);
    expect(countReads(origin)).toBe(3);
  });

  it('does not change for one failing object, but does if all requests fail, until one succeeds', async () => {
    const { origin, app } = await startWithOrigin();
    await expect.poll(() => readReasons(app)).toEqual([]);
    origin.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('down') });
    expect((await app.get('/icons/1/other.png')).statusCode).toBe(502);
    app.clock.advance(1_000);
    expect(await readReasons(app)).toEqual([]);
    app.clock.advance(10_000);
    await expect
      .poll(() => readReasons(app))
      .toEqual(['the origin fails; cached media are served']);
    expect(await reachable(app)).toBe(0);
    origin.failure = undefined;
    app.clock.advance(1_000);
    await expect.poll(() => readReasons(app)).toEqual([]);
    expect(await reachable(app)).toBe(1);
  });

  it('keeps a replica out of service until the first success', async () => {
    const cause = new Error('InvalidAccessKeyId');
    const { app } = await startWithOrigin(new MediaError('ORIGIN_ERROR', { cause }));
    const settings = { ORIGIN_FIRST_BYTE_TIMEOUT_MS: '30' };
    const hanging = await start({ origin: { identity: 'tag' as const, open: never }, settings });
    for (const each of [app, hanging]) {
      await expect.poll(() => readReasons(each)).toEqual(['the origin has failed since the start']);
    }
  });

  it('is reachable if the storage denies access to a missing object', async () => {
    const cause = new AccessRefused('AccessDenied');
    const { app } = await startWithOrigin(new MediaError('ORIGIN_ERROR', { cause }));
    await expect.poll(() => readReasons(app)).toEqual([]);
  });

  it('is logged at once after a failure, each minute while it lasts, and after a new failure', async () => {
    const cause = new Error('connect ECONNREFUSED');
    const { origin, app } = await startWithOrigin(new MediaError('ORIGIN_ERROR', { cause }));
    const lines = () => app.log.errors.filter((details) => 'storage' in details);
    const probe = async (afterMs: number): Promise<void> => {
      app.clock.advance(afterMs);
      const reads = countReads(origin);
      await readReasons(app);
      await expect.poll(() => countReads(origin)).toBe(reads + 1);
    };
    const storage = `directory ${resolve('fixtures/originals')}`;
    const reason = expect.stringMatching(/: connect ECONNREFUSED$/);
    await expect.poll(lines).toMatchObject([{ storage, reason }]);
    for (let seconds = 0; seconds < 60; seconds += 1) {
      expect(lines()).toHaveLength(1);
      await probe(1_000);
    }
    await expect.poll(lines).toHaveLength(2);
    origin.failure = undefined;
    await probe(1_000);
    await expect.poll(() => readReasons(app)).toEqual([]);
    origin.failure = new MediaError('ORIGIN_TIMEOUT');
    await probe(11_000);
    await expect.poll(lines).toHaveLength(3);
    expect(lines()[2]).toMatchObject({ reason: 'no response within ORIGIN_FIRST_BYTE_TIMEOUT_MS' });
  });
});
