import { getPriority } from 'node:os';
import sharp from 'sharp';
import { expect, onTestFinished, test } from 'vitest';
import { type App, createApp } from '../src/app.ts';
import { readConfig } from '../src/config/config.ts';
import { MemoryOrigin } from './support/memory-origin.ts';
import { patient } from './support/patient.ts';
import { workersOf } from './support/processes/worker-ids.ts';
import { STARTER } from './support/processes/worker-pool.ts';
import { RecordedLog } from './support/recorded-log.ts';
import { metricsSettings, parseScrape, withToken } from './support/telemetry/prometheus-text.ts';
import { samples } from './support/test-app.ts';

/** Started with workers that are not ready, and will not be. */
const SILENT_WORKER = new URL('support/processes/silent-worker.mjs', import.meta.url);

async function start(cores: number, workerFile?: URL) {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab12', samples.jpeg);
  const settings = { WORKERS: String(cores), ...metricsSettings, ...patient };
  const log = new RecordedLog();
  const app = await createApp(readConfig(settings), {
    log,
    origin,
    workerFiles: { ...(workerFile && { workerFile }), starterFile: STARTER },
  });
  onTestFinished(() => app.close());
  return { ...app, log };
}

const startWithoutWorkers = () => start(1, SILENT_WORKER);

test('what needs no worker is served before there is one, and the readiness says what is missing', async () => {
  const { server, admin, started } = await startWithoutWorkers();
  started.catch(() => undefined);
  expect((await server.inject('/avatars/0.png')).statusCode).toBe(200);
  expect((await server.inject('/icons/1/ffff.png')).statusCode).toBe(404);
  const readiness = await admin?.inject('/readyz');
  expect(readiness?.statusCode).toBe(503);
  expect(readiness?.json()).toMatchObject({
    status: 'not ready',
    reasons: expect.arrayContaining(['no worker is ready']),
  });
});

test('a render waits for the workers, and is refused if none can be started', async () => {
  const { server, started, endWorkers } = await startWithoutWorkers();
  let status: number | undefined;
  const rendering = server.inject('/icons/1/ab12.webp?size=64').then(({ statusCode }) => {
    status = statusCode;
  });
  expect((await server.inject('/avatars/0.png')).statusCode).toBe(200);
  expect(status).toBeUndefined();
  endWorkers();
  await expect(started).rejects.toThrow();
  await rendering;
  expect(status).toBe(503);
});

test('an app that is closed before its workers are ready has not failed to start', async () => {
  const app = await startWithoutWorkers();
  let outcome = 'pending';
  app.started.then(
    () => {
      outcome = 'started';
    },
    () => {
      outcome = 'failed';
    },
  );
  await app.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(outcome).toBe('pending');
});

/** Resident memory of the heavy workers; 0 of those that have rendered nothing. */
async function readHeavyBytes(admin: App['admin']): Promise<number> {
  const scraped = await admin?.inject({ url: '/metrics', headers: withToken });
  const { read } = parseScrape(scraped?.body ?? '');
  return read('darkroom_worker_resident_memory_bytes', { lane: 'heavy' });
}

test('light renders have the idle heavy worker, too, and what it renders is theirs', async () => {
  const { server, admin, started } = await start(2);
  await started;
  expect(await readHeavyBytes(admin)).toBe(0); // it has rendered nothing
  const sizes = [16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128];
  const widths = sizes.map(async (size) => {
    const { rawPayload } = await server.inject(`/icons/1/ab12.webp?size=${size}`);
    return (await sharp(rawPayload).metadata()).width;
  });
  expect(await Promise.all(widths)).toEqual(sizes);
  expect(await readHeavyBytes(admin)).toBeGreaterThan(0);
});

test('a light render in a heavy worker that gets no core begins anew in a light one', async () => {
  const others = new Set(workersOf(process.pid));
  const { server, admin, started, log } = await start(2);
  await started;
  // What other work on all cores does to a process of the lowest priority, at its worst.
  const [heavy = expect.fail(), ...more] = workersOf(process.pid).filter(
    (pid) => !others.has(pid) && getPriority(pid) === 19,
  );
  expect(more).toEqual([]);
  process.kill(heavy, 'SIGSTOP');
  const responses = await Promise.all(
    [16, 20, 22, 24, 28, 32, 40, 44].map((size) =>
      server.inject(`/icons/1/ab12.webp?size=${size}`),
    ),
  );
  expect(responses.map(({ statusCode }) => statusCode)).toEqual(responses.map(() => 200));
  const ended = () => log.entries.filter(({ message }) => /has ended and is/.test(message));
  await expect.poll(() => ended().length).toBe(1);
  expect(ended()).toMatchObject([{ details: { lane: 'heavy', reason: 'deadline' } }]);
  expect(await readHeavyBytes(admin)).toBe(0); // nothing was rendered as a heavy one
});
