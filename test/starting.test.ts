import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config/config.ts';
import { MemoryOrigin } from './support/memory-origin.ts';
import { patient } from './support/patient.ts';
import { FORK_SERVER } from './support/processes/worker-pool.ts';
import { RecordedLog } from './support/recorded-log.ts';
import { metricsSettings } from './support/telemetry/prometheus-text.ts';
import { samples } from './support/test-app.ts';

/** Starts an app whose worker never becomes ready. */
async function startWithoutWorkers() {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab12', samples.jpeg);
  const workerFile = new URL('support/processes/silent-worker.mjs', import.meta.url);
  const app = await createApp(readConfig({ WORKERS: '1', ...metricsSettings, ...patient }), {
    log: new RecordedLog(),
    origin,
    workerFiles: { forkServerFile: FORK_SERVER, doubles: { workerFile } },
  });
  onTestFinished(() => app.close());
  return app;
}

test('a render waits for the workers, and is rejected if none can start', async () => {
  const { server, started, endWorkers } = await startWithoutWorkers();
  const respond = vi.fn();
  const rendering = server.inject('/icons/1/ab12.webp?size=64').then(respond);
  expect((await server.inject('/avatars/0.png')).statusCode).toBe(200);
  expect(respond).not.toHaveBeenCalled();
  endWorkers();
  await expect(started).rejects.toThrow();
  await rendering;
  expect(respond).toHaveBeenCalledWith(expect.objectContaining({ statusCode: 503 }));
});

test('closing an app before its workers are ready is not a failed start', async () => {
  const app = await startWithoutWorkers();
  const settle = vi.fn();
  app.started.then(settle, settle);
  await app.close();
  await nextTurn();
  expect(settle).not.toHaveBeenCalled();
});
